package limits

import (
	"strings"
	"testing"
	"unicode/utf8"
)

// Number is a length, a count, a size or a time.
type Number interface {
	~int | ~int32 | ~int64 | ~uint | ~uint8 | ~uint16 | ~uint32 | ~uint64
}

// AtMost tries a limit at its boundary: what is one less and what is equal to the limit must be
// accepted, and what is one more must not. A time is tried one nanosecond before and after it.
func AtMost[N Number](t *testing.T, name string, limit N, accepts func(n N) bool) {
	t.Helper()
	boundary(t, name, limit, accepts, true)
}

// Below is like [AtMost], of a limit that is itself not accepted.
func Below[N Number](t *testing.T, name string, limit N, accepts func(n N) bool) {
	t.Helper()
	boundary(t, name, limit, accepts, false)
}

// AtLeast tries a limit from below: what is one less must not be accepted, and what is equal to it
// and one more must.
func AtLeast[N Number](t *testing.T, name string, limit N, accepts func(n N) bool) {
	t.Helper()
	boundary(t, name+", refused", limit, func(n N) bool { return !accepts(n) }, false)
}

func boundary[N Number](t *testing.T, name string, limit N, accepts func(n N) bool, itself bool) {
	t.Helper()
	for _, try := range []struct {
		n    N
		want bool
	}{{limit - 1, true}, {limit, itself}, {limit + 1, false}} {
		if got := accepts(try.n); got != try.want {
			t.Errorf("%s is %v: %v is accepted: %v, want %v", name, limit, try.n, got, try.want)
		}
	}
}

// CutTexts fails the test unless texts are cut well to at most most bytes. cut passes a text
// through the encoder or the decoder that the product uses, and returns what arrives. It may end
// with mark, which says that the text goes on. Texts of characters of one to four bytes are cut at
// each of their bytes; the result must be UTF-8, a beginning of the text, and as long as whole
// characters can be.
func CutTexts(t *testing.T, name string, most int, mark string, cut func(text string) string) {
	t.Helper()
	for _, char := range []string{"a", "é", "€", "😀", "\xff", "\x80"} {
		for shift := range len(char) + 1 {
			for _, size := range []int{0, most - 1, most, most + 1, most + 2, most + 3, most + 4, 2*most + 4} {
				text := strings.Repeat("-", shift) + strings.Repeat(char, max(size-shift, 0)/len(char))
				got := cut(text)
				if !utf8.ValidString(got) {
					t.Fatalf("%s: %q is cut to %q, which is not UTF-8", name, text, got)
				}
				if !utf8.ValidString(text) {
					if len(got) > most+len(mark) {
						t.Fatalf("%s: %q is cut to %q, more than %d bytes", name, text, got, most)
					}
					continue
				}
				whole := text
				if len(text) > most {
					end := most
					for !utf8.RuneStart(text[end]) {
						end--
					}
					whole = text[:end] + mark
				}
				if got != whole {
					t.Fatalf("%s: %q is cut to %q, want %q", name, text, got, whole)
				}
			}
		}
	}
}
