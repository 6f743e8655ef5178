package console

import (
	"fmt"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

const briefly = 100 // characters of a key or another text in a line of the page

func clip(text string, most int) string {
	if utf8.RuneCountInString(text) <= most {
		return text
	}
	return string([]rune(text)[:max(most-1, 1)]) + "…"
}

func sentence(text string) string {
	first, size := utf8.DecodeRuneInString(text)
	if size == 0 {
		return ""
	}
	return string(unicode.ToUpper(first)) + strings.TrimSuffix(text[size:], ".") + "."
}

func span(d time.Duration) string {
	d = max(d, 0)
	switch {
	case d < 10*time.Second:
		return fmt.Sprintf("%.1f s", d.Seconds())
	case d < time.Minute:
		return fmt.Sprintf("%d s", int(d.Seconds()))
	case d < time.Hour:
		return fmt.Sprintf("%d min %02d s", int(d.Minutes()), int(d.Seconds())%60)
	case d < 48*time.Hour:
		return fmt.Sprintf("%d h %02d min", int(d.Hours()), int(d.Minutes())%60)
	}
	return fmt.Sprintf("%d d %02d h", int(d.Hours())/24, int(d.Hours())%24)
}

// inSeconds converts a duration to seconds for JSON, to the millisecond. A negative duration, which
// differing clocks of two machines can cause, becomes 0.
func inSeconds(d time.Duration) float64 { return float64(max(d, 0).Milliseconds()) / 1000 }

func seconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }

func number(n int, one, several string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprint(n) + " " + several
}

// clauses splits a text at its semicolons, except in parentheses, so that a long one can be a list.
func clauses(text string) (all []string) {
	depth, begin := 0, 0
	for i, r := range text {
		switch {
		case r == '(':
			depth++
		case r == ')':
			depth--
		case r == ';' && depth == 0:
			all = append(all, strings.TrimSpace(text[begin:i]))
			begin = i + 1
		}
	}
	return append(all, strings.TrimSpace(text[begin:]))
}
