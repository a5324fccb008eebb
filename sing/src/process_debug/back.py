"""Commands of gdb that go back in a replay, after `places.py`."""
def with_depth(executed, pc):
    """Adds how much deeper in calls each was than a place at this address, which was executed after all of them."""
    depth = 0
    for one in executed:
        name, after = replay.kind(one.pc)
        if name == 'ret':
            depth += 1
        # What the kernel does in a call is not seen.
        elif name == 'call' and pc != after and replay.is_program(pc):
            depth -= 1
        pc = one.pc
        yield one, depth


def instruction_back(walk):
    return next((one.place for one, _ in walk), None)


def over_calls_back(walk):
    return next((one.place for one, depth in walk if depth <= 0), None)


def caller_back(walk):
    return next((one.place for one, depth in walk if depth < 0), None)


def line_back(walk, is_stepped_over=lambda depth: False):
    """The first instruction of the line that was executed before, or of the same one."""
    group = found = None
    least = 0
    for one, depth in walk:
        least = min(least, depth)
        if is_stepped_over(depth - least):
            continue
        line = gdb.find_pc_line(one.pc)
        if line.symtab is None or not line.line:
            continue
        own = line.symtab.filename, line.line, depth
        if group is not None and own != group:
            break
        group, found = own, one.place
    return found


def next_line_back(walk):
    return line_back(walk, lambda deeper: deeper > 0)


def back(find):
    """The place that is found among what was executed before the one where the replay stands."""
    pc, entries = register('rip'), replay.entries()
    return find(with_depth(replay.backwards(replay.here(), entries), pc))


class Back(gdb.Command):
    """Goes back in the replay."""

    def __init__(self, name, find, needs_lines=False):
        super().__init__(name, gdb.COMMAND_RUNNING)
        self.find, self.needs_lines = find, needs_lines

    def invoke(self, argument, _):
        replay.require()
        count = int(gdb.parse_and_eval(argument)) if argument else 1
        if self.needs_lines and replay.is_program(register('rip')) and gdb.find_pc_line(register('rip')).symtab is None:
            raise gdb.GdbError('This program has no source lines: use reverse-stepi, or start with --lines PROGRAM.')
        with Quiet():
            for _ in range(count):
                before = back(self.find)
                replay.go(before or BEGINNING)
                if before is None:
                    break
        told(replay.place)


class Continue(gdb.Command):
    """Goes back to the last stop before: of a breakpoint, or a watchpoint's write."""

    def __init__(self, name):
        super().__init__(name, gdb.COMMAND_RUNNING)

    def invoke(self, *_):
        replay.require()
        text = []
        with Quiet() as quiet:
            place = replay.here()
            hit = self.last_hit(place, quiet)
            if hit is None:
                replay.go(BEGINNING)
            else:
                self.arrive(hit, quiet, text)
        told(replay.place, text)

    def last_hit(self, place, quiet):
        for window in WINDOWS:
            if place.stretch < 1 or not quiet.watched():
                return None
            first = max(place.stretch - window, 0)
            replay.to_stretch(first)
            search = Search()
            search.start(quiet.watched())
            try:
                if first < place.stretch:
                    replay.on_to(place.stretch)
                replay.run_from(place, search)
            finally:
                search.end()
            if search.hits:
                return search.hits[-1]
            if not first:
                return None
        return None

    def arrive(self, hit, quiet, text):
        replay.to_stretch(hit.stretch)
        search = Search((hit.stretch, hit.ordinal))
        search.start(quiet.watched())
        replay.set_limits(hit.stretch + 1)
        try:
            quietly('continue')
        finally:
            search.end()
        replay.place = None
        if hit.original.type == gdb.BP_BREAKPOINT:
            text.append('Breakpoint %d' % hit.original.number)
            return
        expression = hit.original.expression.removeprefix('-location ')
        newer, stretch = value(expression).format_string(), replay.words().stretch
        if replay.is_program(register('rip')):
            before, by = back(instruction_back), None
        else:
            replay.on_to(stretch + 1)
            before, by = Place(stretch, END, 0, 0), replay.words()
        replay.go(before)
        text.append('Watchpoint %d: %s' % (hit.original.number, expression))
        text.append('\nOld value = %s\nNew value = %s' % (newer, value(expression).format_string()))
        if by:
            text.append('Written by the kernel, for event %d of process %d.' % (by.event, by.process))


def told(place, text=()):
    """Tells where the replay stands."""
    if place is not None and place.stretch == 0:
        print('\nNo more reverse-execution history.')
    else:
        print('\n' + '\n'.join(text) if text else '', end='\n' if text else '')
    gdb.execute('frame')


def asked(*words):
    """The lines that `sing replay` answers."""
    answer = subprocess.run(TOOL + ['replay', FILE, *words], capture_output=True, text=True)
    if answer.returncode:
        raise gdb.GdbError(answer.stderr.strip())
    return answer.stdout.splitlines()


class Sender(gdb.Command):
    """Tells who sent the message that the program which stands here has received last."""

    def __init__(self):
        super().__init__('singularity-sender', gdb.COMMAND_DATA)

    def invoke(self, *_):
        replay.require()
        words, last = replay.words(), None
        for line in asked('--messages'):
            received = re.search(r'; received by .* \((\d+)\) at event (\d+)$', line)
            if received and int(received.group(1)) == words.process and int(received.group(2)) <= words.event:
                last = line
        print(last or 'Process %d has received no message up to event %d.' % (words.process, words.event))


class Block(gdb.Command):
    """Tells when the block at an address changed its owner, before now and after."""

    def __init__(self):
        super().__init__('singularity-block', gdb.COMMAND_DATA)

    def invoke(self, argument, _):
        replay.require()
        address = int(gdb.parse_and_eval(argument)) & NEVER
        is_told, now = False, replay.words().event
        for line in asked('--block', '%#x' % address):
            if not is_told and int(re.match(r'event (\d+):', line).group(1)) > now:
                print('now: event %d' % now)
                is_told = True
            print(line)
        if not is_told:
            print('now: event %d' % now)


gdb.execute('set print thread-events off')
replay = Replay()
for name in ['reverse-stepi', 'rsi']:
    Back(name, instruction_back)
for name in ['reverse-nexti', 'rni']:
    Back(name, over_calls_back)
for name in ['reverse-step', 'rs']:
    Back(name, line_back, needs_lines=True)
for name in ['reverse-next', 'rn']:
    Back(name, next_line_back, needs_lines=True)
for name in ['reverse-continue', 'rc']:
    Continue(name)
Back('reverse-finish', caller_back)
Sender()
Block()
gdb.execute('define hook-run\npython replay.before_run()\nend')
gdb.execute('define hookpost-run\npython replay.after_run()\nend')
with Quiet():
    replay.restart()
