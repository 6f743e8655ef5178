package discovery

import (
	"errors"
	"strings"
	"testing"

	"github.com/mortise-lock/mortise/internal/lab/limits"
)

func TestEntriesAtTheirBounds(t *testing.T) {
	address := func(n int) string {
		host := strings.Repeat(strings.Repeat("h", 50)+".", 4)
		return host[:n-len(":7")-1] + "h:7"
	}
	limits.AtMost(t, "MaxAddrBytes", MaxAddrBytes, func(n int) bool { return CheckAddr(address(n)) == nil })
	limits.AtMost(t, "MaxAddrBytes of an entry", MaxAddrBytes, func(n int) bool { return checkListed(address(n)) == nil })
	limits.AtMost(t, "maxPathBytes", maxPathBytes, func(n int) bool {
		return Check("file:///"+strings.Repeat("p", n-1)) == nil
	})
	limits.AtMost(t, "maxListAddrs", maxListAddrs, func(n int) bool { return checkMany(n) == nil })
}

func TestErrorsAreCutBetweenCharacters(t *testing.T) {
	limits.CutTexts(t, "the text of an error", maxErrorBytes, "...", func(text string) string {
		return clipped(errors.New(text)).Error()
	})
}
