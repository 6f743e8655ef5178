package lockfsm

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// arguments are the unused words of a line, and the first error in them.
type arguments struct {
	words []string
	err   error
}

// word removes and returns the first word that is not of the form name=value.
func (a *arguments) word() string {
	for i, w := range a.words {
		if strings.HasPrefix(w, `"`) || !strings.Contains(w, "=") {
			a.words = slices.Delete(slices.Clone(a.words), i, i+1)
			return w
		}
	}
	return ""
}

func (a *arguments) value(name, otherwise string) string {
	for i, w := range a.words {
		if v, found := strings.CutPrefix(w, name+"="); found {
			a.words = slices.Delete(slices.Clone(a.words), i, i+1)
			return v
		}
	}
	return otherwise
}

func (a *arguments) flag(name string) bool {
	if i := slices.Index(a.words, name); i >= 0 {
		a.words = slices.Delete(slices.Clone(a.words), i, i+1)
		return true
	}
	return false
}

func (a *arguments) number(name string, otherwise uint64) uint64 {
	v, err := strconv.ParseUint(a.value(name, fmt.Sprint(otherwise)), 10, 64)
	a.note(err)
	return v
}

func (a *arguments) duration(name string, otherwise time.Duration) time.Duration {
	v, err := time.ParseDuration(a.value(name, otherwise.String()))
	a.note(err)
	return v
}

func (a *arguments) ranges(name string) []Range {
	var all []Range
	text := a.value(name, "")
	if text == "" {
		return nil
	}
	for part := range strings.SplitSeq(text, ",") {
		first, last, both := strings.Cut(part, "-")
		if !both {
			last = first
		}
		f, err := strconv.ParseUint(first, 10, 64)
		a.note(err)
		l, err := strconv.ParseUint(last, 10, 64)
		a.note(err)
		all = append(all, Range{Number(f), Number(l)})
	}
	return all
}

func (a *arguments) note(err error) {
	if a.err == nil {
		a.err = err
	}
}

// rest returns the first error, or an error about unused words.
func (a *arguments) rest() error {
	if a.err == nil && len(a.words) > 0 {
		return fmt.Errorf("what is %q?", a.words)
	}
	return a.err
}
