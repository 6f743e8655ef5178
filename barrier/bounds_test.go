package barrier

import (
	"strings"
	"testing"

	"github.com/mortise-lock/mortise/internal/lab/limits"
)

func TestNamesAtTheirBound(t *testing.T) {
	limits.AtMost(t, "maxName", maxName, func(n int) bool { return checkName(strings.Repeat("n", n)) == nil })
}
