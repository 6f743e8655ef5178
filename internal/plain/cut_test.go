package plain

import (
	"fmt"
	"testing"

	"github.com/mortise-lock/mortise/internal/lab/limits"
)

func TestCut(t *testing.T) {
	for _, most := range []int{4, 5, 100, 255, 256} {
		limits.CutTexts(t, fmt.Sprint("Cut to ", most), most, "", func(text string) string { return Cut(text, most) })
	}
	for most := range 4 {
		if got := Cut("😀😀", most); got != "" {
			t.Errorf("%d bytes of a character of four: %q", most, got)
		}
	}
	if got := Cut("a\xffb", 9); got != "a?b" {
		t.Errorf("%q", got)
	}
}
