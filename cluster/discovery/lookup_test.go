package discovery

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
)

func TestLookupLeadsWhereJoinLeads(t *testing.T) {
	path := filepath.Join(t.TempDir(), "peers")
	if err := os.WriteFile(path, []byte("127.0.0.1:7 # one\n[::1]:8\n127.0.0.1:7\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for entry, want := range map[string][]string{
		"file://" + path:         {"127.0.0.1:7", "[::1]:8"},
		"127.0.0.1:9":            {"127.0.0.1:9"},
		"dns:///127.0.0.1:9":     {"127.0.0.1:9"},
		"file://" + path + "not": nil,
		"http://a":               nil,
	} {
		got, err := Lookup(t.Context(), entry)
		if !slices.Equal(got, want) || (err == nil) != (want != nil) {
			t.Errorf("%s leads to %q, %v; want %q", entry, got, err, want)
		}
	}
}
