package capability

import (
	"errors"
	"strings"
)

var errEscape = errors.New("a percent sign must be followed by two hexadecimal digits")

// literal reports whether a byte is written literally. A space is escaped, because an editor or a
// shell could change it unnoticed.
func literal(b byte) bool { return b > ' ' && b <= '~' && b != '%' && b != '*' }

func encode(text string) string {
	const digits = "0123456789ABCDEF"
	var out strings.Builder
	for i := range len(text) {
		if b := text[i]; literal(b) {
			out.WriteByte(b)
		} else {
			out.WriteString("%" + digits[b>>4:b>>4+1] + digits[b&15:b&15+1])
		}
	}
	return out.String()
}

// decode also decodes spellings that encode never returns, so Parse compares its input with the
// canonical spelling.
func decode(text string) (string, error) {
	var out strings.Builder
	for i := 0; i < len(text); i++ {
		if text[i] != '%' {
			out.WriteByte(text[i])
			continue
		}
		if i+2 >= len(text) {
			return "", errEscape
		}
		high, low := digit(text[i+1]), digit(text[i+2])
		if high < 0 || low < 0 {
			return "", errEscape
		}
		out.WriteByte(byte(high<<4 | low))
		i += 2
	}
	return out.String(), nil
}

func digit(b byte) int {
	switch {
	case b >= '0' && b <= '9':
		return int(b - '0')
	case b >= 'A' && b <= 'F':
		return int(b-'A') + 10
	case b >= 'a' && b <= 'f':
		return int(b-'a') + 10
	}
	return -1
}
