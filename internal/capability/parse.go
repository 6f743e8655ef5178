package capability

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/mortise-lock/mortise/internal/plain"
)

const (
	version = "mortise-capability/1"

	// MaxLines and MaxBytes are the limits of a text.
	MaxLines = 64
	MaxBytes = 4 << 10 // see MaxLines

	maxName = 128 // bytes of the decoded name
)

// These errors report what is wrong with a text, or with the words of a command line. Every error
// of [Parse] also matches ErrNotCanonical.
var (
	ErrNotCanonical = errors.New("capability: the text is not canonical")
	ErrSize         = errors.New("a capability has at most 64 lines and 4096 bytes")
	ErrVersion      = errors.New("the first line must be " + version)
	ErrName         = errors.New("a capability needs a line \"for NAME\" with 1 to 128 bytes of UTF-8 without " +
		"control characters and marks of the direction of writing")
	ErrUntil = errors.New("the end must be written as 2027-01-31T18:00:00Z, in UTC and whole seconds, " +
		"from the year 1970 on")
	ErrRight = errors.New("a right is one of read, write, lock and force, followed by a key or by a " +
		"prefix and *, or the word member alone")
	ErrPattern = errors.New("a pattern is a key or a prefix followed by *; elsewhere an asterisk is " +
		"written %2A, and a percent sign %25")
	ErrOrder     = errors.New("lines must be sorted, each once, as mortise secret prints them")
	ErrRedundant = errors.New("member includes read, write and lock on every key: leave those rights out")
	ErrNoRight   = errors.New("a capability grants at least one right")
)

// Parse parses a canonical text. It refuses a text that [Build] would spell differently, with one
// of the errors of this package.
func Parse(text string) (*Capability, error) {
	c, err := parse(text)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrNotCanonical, err)
	}
	return c, nil
}

func parse(text string) (*Capability, error) {
	if len(text) > MaxBytes || strings.Count(text, "\n") > MaxLines {
		return nil, ErrSize
	}
	body, ended := strings.CutSuffix(text, "\n")
	lines := strings.Split(body, "\n")
	if !ended || lines[0] != version {
		return nil, ErrVersion
	}
	c := &Capability{text: text, hash: sha256.Sum256([]byte(text))}
	lines = lines[1:]
	if len(lines) == 0 || c.setName(lines[0]) != nil {
		return nil, ErrName
	}
	lines = lines[1:]
	if len(lines) > 0 && strings.HasPrefix(lines[0], "until ") {
		if err := c.setUntil(lines[0]); err != nil {
			return nil, err
		}
		lines = lines[1:]
	}
	rights := make([]right, 0, len(lines))
	for i, line := range lines {
		if i > 0 && line <= lines[i-1] {
			return nil, fmt.Errorf("%w: %q", ErrOrder, line)
		}
		if line == "member" {
			c.member = true
			continue
		}
		r, err := readRight(line)
		if err != nil {
			return nil, err
		}
		rights = append(rights, r)
	}
	c.rights = patternsOf(rights)
	return c, check(c.member, rights)
}

func (c *Capability) setName(line string) error {
	encoded, ok := strings.CutPrefix(line, "for ")
	name, err := decode(encoded)
	if !ok || err != nil || encode(name) != encoded || !validName(name) {
		return ErrName
	}
	c.name = name
	return nil
}

func validName(name string) bool {
	return name != "" && len(name) <= maxName && plain.Is(name)
}

func (c *Capability) setUntil(line string) error {
	text := strings.TrimPrefix(line, "until ")
	until, err := time.Parse(time.RFC3339, text)
	if err != nil || stamp(until) != text || until.Year() < 1970 {
		return fmt.Errorf("%w: %q", ErrUntil, text)
	}
	c.until = until.UTC()
	return nil
}

func stamp(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05Z") }

func readRight(line string) (right, error) {
	word, pattern, _ := strings.Cut(line, " ")
	verb := verbOf(word)
	if verb == 0 || pattern == "" {
		return right{}, fmt.Errorf("%w: %q", ErrRight, line)
	}
	r, err := patternOf(pattern)
	if err != nil || r.spelled() != pattern {
		return right{}, fmt.Errorf("%w: %q", ErrPattern, pattern)
	}
	r.verb = verb
	return r, nil
}

func verbOf(word string) Verb {
	for v := Read; v <= Force; v++ {
		if v.String() == word {
			return v
		}
	}
	return 0
}

func patternOf(pattern string) (r right, err error) {
	pattern, r.prefix = strings.CutSuffix(pattern, "*")
	if strings.Contains(pattern, "*") {
		return right{}, ErrPattern
	}
	if r.key, err = decode(pattern); err != nil {
		return right{}, err
	}
	return r, nil
}

func (r right) spelled() string {
	if r.prefix {
		return encode(r.key) + "*"
	}
	return encode(r.key)
}

func check(member bool, rights []right) error {
	if !member && len(rights) == 0 {
		return ErrNoRight
	}
	for _, r := range rights {
		if member && r.verb != Force {
			return ErrRedundant
		}
	}
	return nil
}
