"""Places of a replay, and how gdb gets to an earlier one: it replays again, up to there. Decision 34 says why so.

A place is a stretch of the replay (what a thread runs from one call to the next), an address that is reached in it for
the n-th time, and some single steps from there. `FILE` (the recording) and `TOOL` (the words that start `sing`) are set
before. The replay tells by its function `singularity_replay_stops` where it keeps its position.
"""
import re
import struct
import subprocess
from collections import namedtuple

NEVER = 2**64 - 1
BEGIN, STRETCH, END = 0, 1, 2
FAULTS = 'SIGSEGV SIGBUS SIGILL SIGFPE'
# Steps that gdb makes at once, before they are looked at one by one.
CHUNK = 2000
# Stretches that a search for an earlier stop goes back at first, and each time further.
WINDOWS = [0, 16, 256, 4096, NEVER]
# Callers whose functions' entries are noted as places to step from.
CALLERS = 3
# Frames of the kernel's that a call of it has at most.
FRAMES_IN_KERNEL = 16

# Stretch; address or None for the stretch's beginning; how often it was reached; steps from there.
# `END` as the address: the end of the stretch, where the kernel goes on.
Place = namedtuple('Place', 'stretch address count steps')
BEGINNING = Place(0, None, 0, 0)
# What was executed: place, address, stack pointer.
Executed = namedtuple('Executed', 'place pc sp')
Words = namedtuple('Words', 'stretch event process before stop_at leave_at show_from images images_bytes stacks stacks_bytes')


def quietly(command):
    return gdb.execute(command, to_string=True)


def show_stops(are_shown):
    try:
        quietly('set suppress-cli-notifications %s' % ('off' if are_shown else 'on'))
    except gdb.error:
        # Before gdb 12 they all show.
        pass


def register(name):
    return int(gdb.newest_frame().read_register(name)) & NEVER


def language():
    """The language of expressions, also where gdb chooses it by the place."""
    return re.search(r'(\w+)"', quietly('show language')).group(1)


def in_language(evaluate):
    """Evaluates an expression in the person's language, or in the one in which it was written elsewhere."""
    own = language()
    for name in [own, 'rust', 'c']:
        try:
            quietly('set language %s' % name)
            return evaluate()
        except gdb.error as error:
            why = error
        finally:
            quietly('set language %s' % own)
    raise why


def value(expression):
    return in_language(lambda: gdb.parse_and_eval(expression))


class Hook(gdb.Breakpoint):
    """Where the replay stops at its beginning, at a stretch, and at its end."""

    def __init__(self):
        super().__init__('*&singularity_replay_stops', internal=True)
        self.silent = True
        self.why = self.base = self.pc = None

    def stop(self):
        self.why, self.base, self.pc = register('rdi'), register('rsi'), register('rip')
        return True


class Counter(gdb.Breakpoint):
    """Notes each time that an address is reached, and stops at one of them."""

    def __init__(self, address, log, until=None):
        super().__init__('*%#x' % address, internal=True)
        self.silent = True
        self.address, self.log, self.until, self.count, self.is_done = address, log, until, 0, False

    def stop(self):
        self.count += 1
        self.log.append((self.address, self.count))
        self.is_done = self.until is not None and self.count >= self.until
        return self.is_done


Hit = namedtuple('Hit', 'stretch ordinal original')


class Mirror(gdb.Breakpoint):
    """Notes where a breakpoint of the person stops, in its place."""

    def __init__(self, original, search):
        self.original, self.search = original, search
        if original.type == gdb.BP_BREAKPOINT:
            super().__init__(original.location, internal=True)
        else:
            kind = {gdb.BP_READ_WATCHPOINT: gdb.WP_READ, gdb.BP_ACCESS_WATCHPOINT: gdb.WP_ACCESS}
            watched = kind.get(original.type, gdb.WP_WRITE)
            expression = original.expression.removeprefix('-location ')
            in_language(lambda: super(Mirror, self).__init__(expression, gdb.BP_WATCHPOINT, watched, internal=True))
        self.silent = True

    def stop(self):
        condition = self.original.condition
        return (condition is None or bool(value(condition))) and self.search.hit(self.original)


class Search:
    """The stops of the person's breakpoints, until a place or until one of them."""

    def __init__(self, until=None):
        self.hits, self.until, self.is_over = [], until, lambda: False
        self.mirrors = []

    def start(self, originals):
        self.mirrors = [Mirror(original, self) for original in originals]

    def hit(self, original):
        # A breakpoint at the place itself is no stop before it; a write just before it is one.
        is_write = original.type != gdb.BP_BREAKPOINT
        if replay.is_kernel_on_stack() if is_write else self.is_over():
            return False
        stretch = replay.words().stretch
        ordinal = sum(1 for hit in self.hits if hit.stretch == stretch) + 1
        self.hits.append(Hit(stretch, ordinal, original))
        return self.until is not None and (stretch, ordinal) == self.until

    def end(self):
        for mirror in self.mirrors:
            mirror.delete()


class Quiet:
    """The person's breakpoints and the programs' faults stop nothing meanwhile, and nothing is shown again."""

    def __enter__(self):
        self.stopping = [point for point in gdb.breakpoints() if point.enabled and point.number > 0]
        for point in self.stopping:
            point.enabled = False
        quietly('handle %s nostop noprint pass' % FAULTS)
        show_stops(False)
        self.language, self.is_automatic = language(), gdb.parameter('language') == 'auto'
        quietly('set language %s' % self.language)
        replay.is_quiet = True
        return self

    def watched(self):
        kinds = [gdb.BP_BREAKPOINT, gdb.BP_WATCHPOINT, gdb.BP_HARDWARE_WATCHPOINT]
        kinds += [gdb.BP_READ_WATCHPOINT, gdb.BP_ACCESS_WATCHPOINT]
        return [point for point in self.stopping if point.is_valid() and point.type in kinds]

    def __exit__(self, *_):
        quietly('handle %s stop print pass' % FAULTS)
        show_stops(True)
        if self.is_automatic:
            quietly('set language auto')
        for point in self.stopping:
            if point.is_valid():
                point.enabled = True
        replay.is_quiet = False
        if replay.is_alive():
            replay.set_limits(show_from=replay.shown)


class Replay:
    """The replay that runs, and how to get to another place of it."""

    def __init__(self):
        self.hook = Hook()
        self.is_quiet = False
        # The stretch up to which the person has seen what programs write.
        self.shown = 1
        # The place where it stands, if it is known.
        self.place = None
        self.kinds = {}
        # While the person's `run` goes to the beginning.
        self.run = None
        gdb.events.cont.connect(self.continues)
        gdb.events.stop.connect(self.stops)

    def is_alive(self):
        return gdb.selected_inferior().pid != 0

    def before_run(self):
        if not self.is_quiet:
            self.run = Quiet()
            self.run.__enter__()

    def after_run(self):
        if self.run:
            self.run.__exit__()
            self.run, self.place = None, BEGINNING

    def require(self):
        if not self.is_alive() or self.hook.base is None:
            raise gdb.GdbError('The replay is over; `run` goes to its beginning.')

    def continues(self, _):
        if not self.is_quiet:
            self.place = None

    def stops(self, _):
        if self.is_quiet or self.hook.base is None:
            return
        self.shown = max(self.shown, self.words().stretch)
        self.set_limits(show_from=self.shown)
        if self.is_at(END):
            print('The replay has ended. `reverse-continue` goes back to the last stop, `continue` lets it exit.')

    def words(self):
        memory = gdb.selected_inferior().read_memory(self.hook.base, 8 * len(Words._fields))
        return Words(*struct.unpack('<11Q', memory))

    def set_limits(self, stop_at=NEVER, leave_at=NEVER, show_from=NEVER):
        offset = 8 * Words._fields.index('stop_at')
        words = struct.pack('<3Q', stop_at, leave_at, show_from)
        gdb.selected_inferior().write_memory(self.hook.base + offset, words)

    def is_at(self, why):
        return register('rip') == self.hook.pc and self.hook.why == why

    def is_program(self, pc):
        words = self.words()
        return 0 <= pc - words.images < words.images_bytes

    def is_kernel_on_stack(self):
        """Whether the kernel runs on a program's stack, which it does in a call; it is another kernel than was recorded."""
        words = self.words()
        return not self.is_program(register('rip')) and 0 <= register('rsp') - words.stacks < words.stacks_bytes

    def restart(self):
        self.hook.why = self.hook.base = None
        quietly('run')
        if self.hook.why != BEGIN:
            raise gdb.GdbError('The replay does not begin; see what `cargo sing replay` says.')
        self.set_limits()

    def to_stretch(self, stretch):
        self.restart()
        if stretch:
            self.on_to(stretch)

    def on_to(self, stretch):
        """Goes on to the beginning of a stretch, or to the end of the replay."""
        self.run_to_hook(stop_at=stretch)

    def on_to_end(self, stretch):
        """Goes on to where the thread of a stretch calls, or ends."""
        self.run_to_hook(stretch + 1, stretch)

    def run_to_hook(self, stop_at, leave_at=NEVER):
        self.set_limits(stop_at, leave_at)
        quietly('continue')
        if not self.is_alive() or register('rip') != self.hook.pc:
            raise gdb.GdbError('The replay stopped elsewhere; try again.')

    def run_from(self, place, search=None):
        """Goes on from the beginning of its stretch to a place; a search is told when it is about to come there."""
        search = search or Search()
        if place.address is END:
            return self.on_to_end(place.stretch)
        if place.address is not None:
            counter = Counter(place.address, [], place.count)
            # The search's breakpoints are older than the counter, so gdb asks them first.
            is_last = lambda: counter.count == place.count - 1 and register('rip') == place.address
            search.is_over = lambda: is_last() and not place.steps
            self.set_limits(place.stretch + 1)
            try:
                quietly('continue')
            finally:
                counter.delete()
            if not counter.is_done:
                raise gdb.GdbError('The replay went elsewhere: was its memory or a register changed?')
        self.steps(place.steps - 1)
        search.is_over = lambda: True
        self.steps(min(place.steps, 1))

    def steps(self, count):
        if count > 0:
            quietly('set scheduler-locking on')
            try:
                quietly('stepi %d' % count)
            finally:
                quietly('set scheduler-locking replay')

    def go(self, place):
        self.to_stretch(place.stretch)
        self.run_from(place)
        # One that is far from its anchor is better counted anew than stepped to again.
        self.place = place if place.steps <= CHUNK else None

    def here(self):
        """The place where it stands: its address is reached as often as in the whole stretch, less what is to come."""
        if self.place is not None:
            return self.place
        stretch, pc = self.words().stretch, register('rip')
        if self.is_at(BEGIN) or self.is_at(STRETCH):
            return Place(stretch, None, 0, 0)
        if self.is_at(END):
            return Place(stretch, END, 0, 0)
        left = self.count(pc, stretch)
        self.to_stretch(stretch)
        count = self.count(pc, stretch) - left
        if count < 1:
            raise gdb.GdbError('This place cannot be found again: was memory or a register changed?')
        return Place(stretch, pc, count, 0)

    def count(self, pc, stretch):
        log = []
        counter = Counter(pc, log)
        try:
            self.on_to(stretch + 1)
        finally:
            counter.delete()
        return len(log)

    def entry(self, pc):
        """The entry of the function of an address."""
        found = re.match(r'\S.* \+ (\d+) in section', quietly('info symbol %#x' % pc))
        return pc - int(found.group(1)) if found else pc

    def entries(self):
        """The entries of the functions on the stack of a program, also where it stands in a call of the kernel."""
        frame, found, kernels = gdb.newest_frame(), set(), 0
        while frame is not None and len(found) <= CALLERS and kernels < FRAMES_IN_KERNEL:
            if self.is_program(frame.pc()):
                found.add(self.entry(frame.pc()))
            elif found:
                break
            else:
                kernels += 1
            frame = frame.older()
        return found

    def anchor(self, place, entries):
        """The last place before another, in its stretch, that is reached by a breakpoint."""
        if place.steps:
            return place._replace(steps=0)
        if place.address is None:
            return place
        log, end = [], place.address is END
        self.to_stretch(place.stretch)
        addresses = entries | (set() if end else {place.address})
        counters = [Counter(address, log, place.count if address == place.address else None) for address in addresses]
        try:
            self.on_to_end(place.stretch) if end else self.run_to_counter(place.stretch)
        finally:
            for counter in counters:
                counter.delete()
        before = log if end else [hit for hit in log if hit != (place.address, place.count)]
        return Place(place.stretch, *(before[-1] if before else (None, 0)), 0)

    def run_to_counter(self, stretch):
        self.set_limits(stretch + 1)
        quietly('continue')

    def trail(self, place, anchor):
        """What programs executed from an anchor to a place."""
        done = self.unseen(place, anchor)
        self.go(anchor._replace(steps=done))
        self.set_limits(place.stretch + 1, place.stretch)
        trail = []
        while not (done == place.steps if place.steps else self.has_come(place, done)):
            pc = register('rip')
            if self.is_program(pc):
                trail.append(Executed(anchor._replace(steps=done), pc, register('rsp')))
            self.steps(1)
            done += 1
        return trail

    def has_come(self, place, done):
        # The stretch's beginning is at the hook, too.
        return done > 0 and register('rip') == (self.hook.pc if place.address is END else place.address)

    def unseen(self, place, anchor):
        """Steps from an anchor that are not worth a look."""
        if place.steps:
            return max(place.steps - CHUNK, 0)
        self.go(anchor)
        self.set_limits(place.stretch + 1, place.stretch)
        log = []
        counter = None if place.address is END else Counter(place.address, log, 1)
        done = 0
        try:
            while True:
                self.steps(CHUNK)
                if log or register('rip') == self.hook.pc:
                    break
                done += CHUNK
        finally:
            if counter:
                counter.delete()
        return done

    def backwards(self, place, entries):
        """What the thread executed before a place, the last first. Functions with these entries are on its stack."""
        while place.stretch:
            if place.address is END:
                self.go(place)
                entries = self.entries()
            if place.address is not None or place.steps:
                anchor = self.anchor(place, entries)
                yield from reversed(self.trail(place, anchor))
                place = anchor
            else:
                self.to_stretch(place.stretch)
                before = self.words().before
                if not before:
                    return
                place = Place(before, END, 0, 0)

    def kind(self, pc):
        """`call`, `ret` or another instruction, and the address after it."""
        if pc not in self.kinds:
            [instruction] = gdb.newest_frame().architecture().disassemble(pc)
            name = instruction['asm'].replace('bnd ', '').replace('repz ', '').split()[0]
            self.kinds[pc] = name.rstrip('q'), pc + instruction['length']
        return self.kinds[pc]
