package fence

import (
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/mortise-lock/mortise/internal/lab/limits"
)

func TestNamesAtTheirBounds(t *testing.T) {
	limits.AtMost(t, "maxResource", maxResource, func(n int) bool { return check(strings.Repeat("r", n), 1) == nil })
	for _, d := range []Dialect{PostgreSQL, MySQL, SQLite} {
		limits.AtMost(t, "maxName", maxName, func(n int) bool {
			_, err := d.quote(strings.Repeat("s", n) + ".t")
			return err == nil
		})
	}
	// Each byte of a name may be escaped in a header.
	limits.AtMost(t, "maxResource in a header", maxResource, func(n int) bool {
		r := httptest.NewRequest("PUT", "/", nil)
		r.Header.Set(ResourceHeader, strings.ReplaceAll(url.PathEscape(strings.Repeat(" ", n)), "+", "%20"))
		resource, err := Guard{}.resource(r)
		return err == nil && check(resource, 1) == nil
	})
}
