package capability

import (
	"fmt"
	"strings"
	"testing"

	"github.com/mortise-lock/mortise/internal/lab/limits"
)

func TestTextsAtTheirBounds(t *testing.T) {
	limits.AtMost(t, "maxName", maxName, func(n int) bool { return validName(strings.Repeat("n", n)) })
	head := version + "\nfor n\n"
	reads := func(keys ...string) string {
		text := head
		for _, key := range keys {
			text += "read " + key + "\n"
		}
		return text
	}
	limits.AtMost(t, "MaxLines", MaxLines, func(n int) bool {
		var keys []string
		for i := range n - strings.Count(head, "\n") {
			keys = append(keys, fmt.Sprintf("%03d", i))
		}
		_, err := Parse(reads(keys...))
		return err == nil
	})
	limits.AtMost(t, "MaxBytes", MaxBytes, func(n int) bool {
		var keys []string
		for i := 0; n-len(reads(keys...)) > 500; i++ {
			keys = append(keys, fmt.Sprintf("%03d", i)+strings.Repeat("k", 300))
		}
		last := fmt.Sprintf("%03d", len(keys))
		keys = append(keys, last+strings.Repeat("k", n-len(reads(append(keys, last)...))))
		_, err := Parse(reads(keys...))
		return err == nil
	})
}
