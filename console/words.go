package console

import (
	"fmt"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/mortise-lock/mortise/internal/plain"
)

// shown is a key, a value or a name as it is shown: what a reader would not see, or what would
// change how he sees the rest, such as a mark that turns the direction of writing, is written as
// its number.
func shown(text string) string { return plain.Text(text) }

// clip shortens text to so many runes.
func clip(text string, most int) string {
	if utf8.RuneCountInString(text) <= most {
		return text
	}
	return string([]rune(text)[:max(most-1, 1)]) + "…"
}

// sentence begins with a capital letter and ends with a full stop.
func sentence(text string) string {
	first, size := utf8.DecodeRuneInString(text)
	if size == 0 {
		return ""
	}
	return string(unicode.ToUpper(first)) + strings.TrimSuffix(text[size:], ".") + "."
}

// span shows a duration in at most two units.
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

// inSeconds is a duration as JSON has it: to the millisecond, and not below 0, which clocks of two
// machines could make it.
func inSeconds(d time.Duration) float64 { return float64(max(d, 0).Milliseconds()) / 1000 }

func seconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }

// number shows a count with the noun of one, or of several.
func number(n int, one, several string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprint(n) + " " + several
}
