package variables

import (
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/mortise-lock/mortise/internal/lab/limits"
)

func TestBytesAtTheirBound(t *testing.T) {
	limits.AtMost(t, "maxBytes", int64(maxBytes), func(n int64) bool {
		r, _ := New("BOUND", []string{"BOUND_BYTES=" + strconv.FormatInt(n, 10)})
		return r.Bytes("BYTES") == n && r.Err() == nil
	})
}

func TestAFileOfLinesAtItsBound(t *testing.T) {
	limits.AtMost(t, "maxLinesBytes", maxLinesBytes, func(n int) bool {
		path := filepath.Join(t.TempDir(), "lines")
		if err := os.WriteFile(path, []byte("l"+strings.Repeat("\n", n-2)+"m"), 0o600); err != nil {
			t.Fatal(err)
		}
		r, _ := New("BOUND", nil)
		return slices.Equal(r.Lines("FILE", path), []string{"l", "m"}) && r.Err() == nil
	})
}
