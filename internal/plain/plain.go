// Package plain makes text of other processes safe to print. A key, a value, a name or a reason may
// come from another process. Printed unchanged, it may clear a terminal, overwrite a line, or
// reverse the direction of the text after it.
//
//   - [Text] escapes one text, [Lines] a text of several lines, [JSON] an encoded value.
//   - [Cut] shortens a text, never inside a character.
//   - [Sprintf] is fmt.Sprintf with arguments that it escapes.
//   - [Is] reports whether a text is ordinary text.
//
// Guarantees: the result of Text contains only letters, marks, numbers, punctuation, symbols and
// the ordinary space, and Text does not change such a text. Concurrency: pure functions. Failure:
// none. Limits: letters that look alike are not distinguished. Refused alternative: texts could be
// escaped before they are stored, but then the stored text would differ from the original.
package plain

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Text returns text with an escape such as \u{1b} in place of every rune that is invisible, or that
// changes how other runes are displayed. A byte that is not UTF-8 becomes \x{ff}.
func Text(text string) string { return escape(text, hidden) }

// Lines escapes text like Text, but keeps line breaks.
func Lines(text string) string {
	return escape(text, func(r rune) bool { return r != '\n' && hidden(r) })
}

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

// Cut shortens text to at most most bytes. It removes no more than the limit and a whole last
// character require, and replaces bytes that are not UTF-8 by a question mark, because fields of
// protobuf refuse them. A text that is short enough and UTF-8 is not changed.
func Cut(text string, most int) string {
	if len(text) > most {
		end := most
		for end > 0 && end > most-utf8.UTFMax && !utf8.RuneStart(text[end]) {
			end--
		}
		text = text[:end]
	}
	return strings.ToValidUTF8(text, "?")
}

// JSON returns an encoded value in which JSON escapes replace the runes that Text would escape. The
// result decodes to the same value. Line breaks outside of strings are kept.
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
// of strings. The format is not escaped, and must be a constant of the program.
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

// NotText is the last part of an error message about a text that the function Is rejects.
const NotText = "contains control characters, marks of the direction of writing or invalid UTF-8"

// Is reports whether text is UTF-8 without control characters, line separators and marks that
// change the direction of writing.
func Is(text string) bool {
	return utf8.ValidString(text) && strings.IndexFunc(text, func(r rune) bool {
		return unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r) || r == '\u2028' || r == '\u2029'
	}) < 0
}
