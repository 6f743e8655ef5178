package tofu

import (
	"fmt"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/mortise-lock/mortise/internal/lab/limits"
)

func TestARequestAtItsBounds(t *testing.T) {
	reads := func(body string) bool {
		w := httptest.NewRecorder()
		_, err := readInfo(w, httptest.NewRequest("LOCK", "/", strings.NewReader(body)))
		return err == nil
	}
	limits.AtMost(t, "maxBody", maxBody, func(n int) bool { return reads("{}" + strings.Repeat(" ", n-2)) })
	limits.AtMost(t, "maxID", maxID, func(n int) bool {
		return reads(fmt.Sprintf("{%q: %q}", "ID", strings.Repeat("i", n)))
	})
	limits.AtMost(t, "maxSpan, in seconds", int64(maxSpan.Seconds()), func(n int64) bool {
		d, err := span(fmt.Sprint(n))
		return err == nil && d.Seconds() == float64(n)
	})
}
