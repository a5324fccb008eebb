// Go-words counts the words of files below folders, on several goroutines.
package main

import (
	"bufio"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sort"
	"strings"
	"sync"
	"unicode"
)

const workers = 4

type count struct {
	word  string
	times int
}

func main() {
	most := flag.Int("n", 10, "number of words to show")
	out := flag.String("o", "", "file to write to instead of standard output")
	flag.Parse()
	folders := flag.Args()
	if len(folders) == 0 {
		folders = []string{"."}
	}
	counts, failed := countAll(folders)
	if err := write(*out, top(counts, *most)); err != nil {
		fmt.Fprintln(os.Stderr, err)
		failed = true
	}
	if failed {
		os.Exit(1)
	}
}

// countAll returns how often each word occurs, and whether a file could not be read.
func countAll(folders []string) (map[string]int, bool) {
	var (
		paths  = make(chan string)
		lock   sync.Mutex
		group  sync.WaitGroup
		sums   = map[string]int{}
		failed = false
	)
	report := func(err error) {
		fmt.Fprintln(os.Stderr, err)
		lock.Lock()
		failed = true
		lock.Unlock()
	}
	for range workers {
		group.Add(1)
		go func() {
			defer group.Done()
			for path := range paths {
				counts, err := countFile(path)
				if err != nil {
					report(err)
				}
				lock.Lock()
				for word, times := range counts {
					sums[word] += times
				}
				lock.Unlock()
			}
		}()
	}
	for _, folder := range folders {
		err := filepath.WalkDir(folder, func(path string, entry fs.DirEntry, err error) error {
			switch {
			case err != nil:
				report(err)
			case entry.Type().IsRegular():
				paths <- path
			}
			return nil
		})
		if err != nil {
			report(err)
		}
	}
	close(paths)
	group.Wait()
	return sums, failed
}

func countFile(path string) (map[string]int, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	counts := map[string]int{}
	lines := bufio.NewScanner(file)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		for _, word := range strings.FieldsFunc(lines.Text(), func(letter rune) bool { return !unicode.IsLetter(letter) }) {
			counts[strings.ToLower(word)]++
		}
	}
	return counts, lines.Err()
}

// top returns the words that occur most, the most frequent first.
func top(counts map[string]int, most int) []count {
	all := make([]count, 0, len(counts))
	for word, times := range counts {
		all = append(all, count{word, times})
	}
	sort.Slice(all, func(i, j int) bool {
		if all[i].times != all[j].times {
			return all[i].times > all[j].times
		}
		return all[i].word < all[j].word
	})
	return all[:min(max(most, 0), len(all))]
}

func write(path string, counts []count) error {
	out := os.Stdout
	if path != "" {
		file, err := os.Create(path)
		if err != nil {
			return err
		}
		out = file
	}
	buffered := bufio.NewWriter(out)
	for _, one := range counts {
		fmt.Fprintf(buffered, "%7d %s\n", one.times, one.word)
	}
	if err := buffered.Flush(); err != nil {
		return err
	}
	return out.Close()
}
