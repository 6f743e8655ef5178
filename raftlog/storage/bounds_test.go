package storage

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/mortise-lock/mortise/internal/lab/limits"
)

func TestRecordsAtTheirBounds(t *testing.T) {
	m, err := openMeta(testMeta(t))
	if err != nil {
		t.Fatal(err)
	}
	defer m.close()
	limits.AtMost(t, "maxMetaName", maxMetaName, func(n int) bool {
		name := strings.Repeat("n", n)
		return m.put(map[string][]byte{name: {1}}) == nil && m.put(map[string][]byte{name: nil}) == nil
	})
	limits.AtMost(t, "maxMetaBytes", maxMetaBytes, func(n int) bool {
		if err := m.put(map[string][]byte{"large": {}}); err != nil {
			t.Fatal(err)
		}
		if err := m.put(map[string][]byte{"large": make([]byte, n-len(m.encode()))}); err != nil {
			return false
		}
		got, err := decodeMeta(m.encode())
		return err == nil && len(m.encode()) == n && len(got.records["large"]) > n/2
	})
}

func TestSizesAtTheirBounds(t *testing.T) {
	path := filepath.Join(t.TempDir(), "d")
	opens := func(n int) bool {
		d, err := Open(Config{Path: path, SegmentBytes: n})
		return err == nil && d.Close() == nil
	}
	limits.AtLeast(t, "segmentBytesMin", segmentBytesMin, opens)
	limits.AtMost(t, "maxSegmentBytes", maxSegmentBytes, opens)
	limits.AtMost(t, "maxFrameBytes", maxFrameBytes, func(n int) bool { return checkFrame(n) == nil })
}
