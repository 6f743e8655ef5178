// Package plain makes text of other processes safe to print. A key, a value, a name or a reason is
// what another process says. Printed raw it may clear a terminal, rewrite the line above, begin a
// line of its own, or turn the direction of what follows.
//
//   - [Text] escapes one piece of it, [Lines] what consists of lines, [JSON] what is encoded
//     already.
//   - [Sprintf] is fmt.Sprintf over pieces that it escapes.
//   - [Is] reports whether a text may enter where only ordinary text belongs.
//
// Guarantees: what Text returns has no rune but letters, marks, numbers, punctuation, symbols and
// the ordinary space, and Text leaves it as it is. Concurrency: pure functions. Failure: none.
// Limits: letters that look alike stay alike. Refused alternative: to escape where text is stored.
// What is stored would then differ from what was said, and comparing it would fail.
package plain

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Text returns text with every rune that cannot be seen, or that changes how the rest is seen, as
// its number: \u{1b}. A byte that is not UTF-8 becomes \x{ff}.
func Text(text string) string { return escape(text, hidden) }

// Lines is Text, but for line breaks, which it keeps.
func Lines(text string) string {
	return escape(text, func(r rune) bool { return r != '\n' && hidden(r) })
}

// hidden reports whether a rune cannot be seen: all but letters, marks, numbers, punctuation,
// symbols and the ordinary space.
func hidden(r rune) bool { return !unicode.IsPrint(r) }

func escape(text string, hidden func(rune) bool) string {
	if strings.IndexFunc(text, hidden) < 0 && utf8.ValidString(text) {
		return text
	}
	var b strings.Builder
	for len(text) > 0 {
		r, size := utf8.DecodeRuneInString(text)
		switch {
		case r == utf8.RuneError && size == 1:
			fmt.Fprintf(&b, "\\x{%02x}", text[0])
		case hidden(r):
			fmt.Fprintf(&b, "\\u{%x}", r)
		default:
			b.WriteRune(r)
		}
		text = text[size:]
	}
	return b.String()
}

// JSON returns an encoded value in which the runes that Text would escape are escapes of JSON: it
// decodes to the same. Line breaks outside of strings stay.
func JSON(encoded []byte) []byte {
	if text := string(encoded); strings.IndexFunc(text, func(r rune) bool { return r != '\n' && hidden(r) }) >= 0 {
		var b strings.Builder
		for _, r := range text {
			switch {
			case r == '\n' || !hidden(r):
				b.WriteRune(r)
			case r > 0xffff:
				high, low := (r-0x10000)>>10+0xd800, (r-0x10000)&0x3ff+0xdc00
				fmt.Fprintf(&b, `\u%04x\u%04x`, high, low)
			default:
				fmt.Fprintf(&b, `\u%04x`, r)
			}
		}
		return []byte(b.String())
	}
	return encoded
}

// Sprintf is fmt.Sprintf with Text applied to every argument that is a string, an error or a list
// of strings. The format is the program's own, and is not escaped.
func Sprintf(format string, args ...any) string {
	safe := make([]any, len(args))
	for i, arg := range args {
		switch v := arg.(type) {
		case string:
			safe[i] = Text(v)
		case []string:
			list := make([]string, len(v))
			for j := range v {
				list[j] = Text(v[j])
			}
			safe[i] = list
		case error:
			safe[i] = Text(v.Error())
		default:
			safe[i] = arg
		}
	}
	return fmt.Sprintf(format, safe...)
}

// NotText ends the sentence of an error about a text that Is does not hold of.
const NotText = "contains control characters, marks of the direction of writing or invalid UTF-8"

// Is reports whether text is UTF-8 without control characters, line separators and marks that
// change the direction of writing.
func Is(text string) bool {
	return utf8.ValidString(text) && strings.IndexFunc(text, func(r rune) bool {
		return unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r) || r == '\u2028' || r == '\u2029'
	}) < 0
}
