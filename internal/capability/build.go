package capability

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// Build makes a capability for name from the words of a command line. Each word is a right, such as
// "lock cron/*" or "member". Words may be in any order and repeated, and bytes may be written
// literally or as %XX. until is truncated to whole seconds; zero means that there is no end.
func Build(name string, until time.Time, words ...string) (*Capability, error) {
	if !validName(name) {
		return nil, fmt.Errorf("capability: %w", ErrName)
	}
	var rights []string
	for _, word := range words {
		line, err := rightOf(word)
		if err != nil {
			return nil, fmt.Errorf("capability: %w: %q", err, word)
		}
		rights = append(rights, line)
	}
	slices.Sort(rights)
	lines := []string{version, "for " + encode(name)}
	if !until.IsZero() {
		lines = append(lines, "until "+stamp(until))
	}
	lines = append(lines, slices.Compact(rights)...)
	c, err := parse(strings.Join(lines, "\n") + "\n")
	if err != nil {
		return nil, fmt.Errorf("capability: %w", err)
	}
	return c, nil
}

func rightOf(word string) (string, error) {
	word = strings.TrimSpace(word)
	if word == "member" {
		return word, nil
	}
	first, pattern, _ := strings.Cut(word, " ")
	verb := verbOf(first)
	if verb == 0 || pattern == "" {
		return "", ErrRight
	}
	r, err := patternOf(strings.TrimLeft(pattern, " "))
	if err != nil {
		return "", ErrPattern
	}
	return verb.String() + " " + r.spelled(), nil
}

// For makes the capability that a configuration assigns to a name. The argument text is either a
// canonical text, or only the rights, one on each line, in any order.
func For(name, text string) (*Capability, error) {
	if strings.HasPrefix(text, "mortise-capability/") {
		return Parse(text)
	}
	var words []string
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(line); line != "" {
			words = append(words, line)
		}
	}
	return Build(name, time.Time{}, words...)
}
