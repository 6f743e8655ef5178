// Package variables reads environment variables whose names share a prefix, and collects the errors
// for each variable.
//
// A Reader belongs to one goroutine. Each error names its variable; Err joins all errors. No error
// contains text of a file of secrets. Refused alternative: tags on the fields of a struct, which
// could not explain how to correct an error.
package variables

import (
	"errors"
	"fmt"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Reader reads variables, and records which were read.
type Reader struct {
	Prefix   string   // ends with an underscore
	Warnings []string // about files that other users may read

	values map[string]string
	known  []string // suffixes that were read
	errs   []error
}

const prefixForm = "^[A-Za-z_][A-Za-z0-9_]*$"

const maxBytes = 1 << 40

// New returns a Reader of the variables in environ whose names begin with prefix and an
// underscore. It returns false if the name of a variable cannot begin with prefix.
func New(prefix string, environ []string) (*Reader, bool) {
	prefix = strings.TrimSuffix(prefix, "_")
	if !regexp.MustCompile(prefixForm).MatchString(prefix) {
		return nil, false
	}
	if runtime.GOOS == "windows" {
		prefix = strings.ToUpper(prefix) // names are not case-sensitive on Windows
	}
	r := &Reader{Prefix: prefix + "_", values: map[string]string{}}
	for _, pair := range environ {
		name, value, _ := strings.Cut(pair, "=")
		if runtime.GOOS == "windows" {
			name = strings.ToUpper(name)
		}
		suffix, ours := strings.CutPrefix(name, r.Prefix)
		if _, twice := r.values[suffix]; ours && !twice {
			r.values[suffix] = strings.TrimSpace(value)
		}
	}
	return r, true
}

// Err returns all errors, or nil.
func (r *Reader) Err() error {
	if len(r.errs) == 0 {
		return nil
	}
	return fmt.Errorf("the environment has %d mistake(s):\n%w", len(r.errs), errors.Join(r.errs...))
}

// Add records an error. The error must name the variable.
func (r *Reader) Add(err error) { r.errs = append(r.errs, err) }

// Set reports whether a variable has a value. It does not record the variable as read.
func (r *Reader) Set(suffix string) bool { return r.values[suffix] != "" }

// Fault records an error in a variable.
func (r *Reader) Fault(suffix, format string, args ...any) {
	r.errs = append(r.errs, fmt.Errorf("%s%s: %s", r.Prefix, suffix, fmt.Sprintf(format, args...)))
}

// Text returns the value of a variable, and records the variable as read, like all methods below.
// An empty variable counts as not set.
func (r *Reader) Text(suffix string) string {
	r.known = append(r.known, suffix)
	return r.values[suffix]
}

// List reads values separated by commas.
func (r *Reader) List(suffix string) []string {
	text := r.Text(suffix)
	if text == "" {
		return nil
	}
	parts := strings.Split(strings.TrimSuffix(text, ","), ",")
	for i, part := range parts {
		if parts[i] = strings.TrimSpace(part); parts[i] == "" {
			r.Fault(suffix, "part %d of the list is empty", i+1)
		}
	}
	return slices.DeleteFunc(parts, func(part string) bool { return part == "" })
}

// Number reads a number. Zero is an error, because it stands for the default in every setting.
func (r *Reader) Number(suffix string) int {
	text := r.Text(suffix)
	if text == "" {
		return 0
	}
	n, err := strconv.Atoi(text)
	if err != nil {
		r.Fault(suffix, "%q is not a number", text)
	}
	if err == nil && n == 0 {
		r.Fault(suffix, "0 is not allowed: leave it empty for the default")
	}
	return n
}

// Bytes reads a number of bytes, which may have a unit.
func (r *Reader) Bytes(suffix string) int64 {
	text := r.Text(suffix)
	if text == "" {
		return 0
	}
	digits, unit := text, int64(1)
	for i, name := range [...]string{"KiB", "MiB", "GiB", "TiB"} {
		if rest, found := strings.CutSuffix(text, name); found {
			digits, unit = strings.TrimSpace(rest), 1<<(10*(i+1))
		}
	}
	n, err := strconv.ParseInt(digits, 10, 64)
	if err != nil || n <= 0 || n > maxBytes/unit {
		r.Fault(suffix, "%q is not a number of bytes up to 1TiB, as 67108864 or 64MiB: "+
			"leave it empty for the default", text)
		return 0
	}
	return n * unit
}

// Flag reads true or false.
func (r *Reader) Flag(suffix string) bool {
	switch text := r.Text(suffix); strings.ToLower(text) {
	case "", "false", "0", "no":
		return false
	case "true", "1", "yes":
		return true
	default:
		r.Fault(suffix, "%q is neither true nor false", text)
		return false
	}
}

// Duration reads a duration. If the argument none is true, it also accepts the word "none" and
// returns a negative duration.
func (r *Reader) Duration(suffix string, none bool) time.Duration {
	text := r.Text(suffix)
	switch {
	case text == "":
		return 0
	case none && text == "none":
		return -1
	}
	d, err := time.ParseDuration(text)
	switch {
	case err != nil:
		r.Fault(suffix, "%q is not a duration: write 10s or 1m", text)
	case d <= 0 && none:
		r.Fault(suffix, "%q: leave it empty for the default, or write none", text)
	case d <= 0:
		r.Fault(suffix, "%q is not above zero", text)
	default:
		return d
	}
	return 0
}
