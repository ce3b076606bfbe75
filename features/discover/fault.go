package discover

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// faults collects everything that is wrong with a file, to be told at once.
type faults struct {
	file  string
	list  []fault
	fatal bool // what follows would only be consequences
}

// maxFaults bounds what is told; the rest is counted.
const maxFaults = 20

// fault reads `file:line: where: what; do`.
type fault struct {
	line            int
	where, what, do string
}

func (f *faults) add(line int, where, what, do string) {
	f.list = append(f.list, fault{line, where, what, do})
}

func (f *faults) empty() bool { return len(f.list) == 0 }

// err joins the faults in order of lines; nil if there are none.
func (f *faults) err() error {
	slices.SortStableFunc(f.list, func(a, b fault) int { return cmp.Compare(a.line, b.line) })
	var errs []error
	for i, ft := range f.list {
		if i == maxFaults {
			errs = append(errs, fmt.Errorf("%s: %d more", f.file, len(f.list)-i))
			break
		}
		errs = append(errs, errors.New(f.text(ft)))
	}
	return errors.Join(errs...)
}

func (f *faults) text(ft fault) string {
	at := f.file
	if ft.line > 0 {
		at += ":" + strconv.Itoa(ft.line)
	}
	if ft.where != "" {
		at += ": " + ft.where
	}
	return at + ": " + ft.what + "; " + ft.do
}

// show is text from a file as it may stand in a message: short and without control characters.
func show(s string) string {
	const most = 60
	if len(s) > most {
		cut := most
		for !utf8.RuneStart(s[cut]) {
			cut--
		}
		s = s[:cut] + "…"
	}
	if strings.ContainsFunc(s, func(r rune) bool { return !strconv.IsPrint(r) }) {
		return strconv.Quote(s)
	}
	return s
}

// nearest returns the known word closest to s, or "" when none is close: up to a third of it may
// be wrong.
func nearest(s string, known []string) string {
	best, least := "", len(s)/3+1
	if len(s) > 40 {
		return ""
	}
	for _, k := range known {
		if d := distance(strings.ToLower(s), k); d < least || d == least && best == "" {
			best, least = k, d
		}
	}
	return best
}

// distance is the number of letters to insert, delete, replace or swap with their neighbour to turn
// a into b.
func distance(a, b string) int {
	prev2, prev, row := make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range row {
		prev[j] = j
	}
	for i := 1; i <= len(a); i++ {
		row[0] = i
		for j := 1; j <= len(b); j++ {
			change := 1
			if a[i-1] == b[j-1] {
				change = 0
			}
			row[j] = min(prev[j]+1, row[j-1]+1, prev[j-1]+change)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				row[j] = min(row[j], prev2[j-2]+1)
			}
		}
		prev2, prev, row = prev, row, prev2
	}
	return prev[len(b)]
}
