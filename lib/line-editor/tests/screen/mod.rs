//! Terminal emulator for tests: renders an editor's output.

use unicode_width::UnicodeWidthChar;

pub struct Screen {
    cells: Vec<Vec<String>>,
    columns: usize,
    row: usize,
    column: usize,
    wrap_pending: bool,
    pub bells: usize,
    pub colours: usize,
}

impl Screen {
    pub fn new(columns: usize, rows: usize) -> Screen {
        let cells = vec![vec![" ".to_string(); columns]; rows];
        Screen { cells, columns, row: 0, column: 0, wrap_pending: false, bells: 0, colours: 0 }
    }

    pub fn write(&mut self, bytes: &[u8]) {
        let text = std::str::from_utf8(bytes).expect("the editor writes UTF-8");
        let mut characters = text.chars();
        while let Some(character) = characters.next() {
            match character {
                '\x1b' => {
                    assert_eq!(characters.next(), Some('['));
                    let mut parameters = String::new();
                    let last = loop {
                        let character = characters.next().expect("a whole sequence");
                        if character.is_ascii_alphabetic() {
                            break character;
                        }
                        parameters.push(character);
                    };
                    self.sequence(&parameters, last);
                }
                '\r' => self.go(self.row, 0),
                '\n' => self.line_feed(),
                '\x07' => self.bells += 1,
                _ => {
                    assert!(!character.is_control(), "control character {character:?} reaches the terminal");
                    self.put(character);
                }
            }
        }
    }

    /// Rows without trailing blanks, up to the last non-empty one.
    pub fn rows(&self) -> Vec<String> {
        let mut rows: Vec<String> = self.cells.iter().map(|row| row.concat().trim_end().to_string()).collect();
        while rows.last().is_some_and(String::is_empty) {
            rows.pop();
        }
        rows
    }

    pub fn cursor(&self) -> (usize, usize) {
        (self.row, self.column)
    }

    fn go(&mut self, row: usize, column: usize) {
        self.row = row.min(self.cells.len() - 1);
        self.column = column.min(self.columns - 1);
        self.wrap_pending = false;
    }

    fn line_feed(&mut self) {
        self.wrap_pending = false;
        if self.row + 1 == self.cells.len() {
            self.cells.remove(0);
            self.cells.push(vec![" ".to_string(); self.columns]);
        } else {
            self.row += 1;
        }
    }

    fn put(&mut self, character: char) {
        let width = character.width().unwrap_or(0);
        if width == 0 {
            let before = if self.wrap_pending { self.column } else { self.column.saturating_sub(1) };
            self.cells[self.row][before].push(character);
            return;
        }
        if self.wrap_pending || self.column + width > self.columns {
            self.column = 0;
            self.line_feed();
        }
        self.cells[self.row][self.column] = character.to_string();
        for covered in 1..width {
            self.cells[self.row][self.column + covered] = String::new();
        }
        self.column += width;
        if self.column == self.columns {
            self.column -= 1;
            self.wrap_pending = true;
        }
    }

    fn sequence(&mut self, parameters: &str, last: char) {
        let count = parameters.parse().unwrap_or(1);
        match last {
            'A' => self.go(self.row.saturating_sub(count), self.column),
            'B' => self.go(self.row + count, self.column),
            'C' => self.go(self.row, self.column + count),
            'H' => self.go(0, 0),
            'J' => {
                let (row, column) = if parameters == "2" { (0, 0) } else { (self.row, self.column) };
                self.cells[row][column..].fill(" ".to_string());
                for below in &mut self.cells[row + 1..] {
                    below.fill(" ".to_string());
                }
            }
            'm' => self.colours += 1,
            'h' | 'l' => assert_eq!(parameters, "?2004"),
            _ => panic!("sequence {parameters:?} {last:?} is not in the model"),
        }
    }
}
