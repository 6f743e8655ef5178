package discovery

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

func TestFormsOfJoin(t *testing.T) {
	for _, c := range []struct {
		entry string
		kind  form
		want  string
	}{
		{"a:1", formHost, "a:1"},
		{"10.0.0.1:7947", formHost, "10.0.0.1:7947"},
		{"[fd00::1]:7947", formHost, "[fd00::1]:7947"},
		{"dns:///orders.default.svc:7947", formHost, "orders.default.svc:7947"},
		{"dns:///[fd00::1]:7947", formHost, "[fd00::1]:7947"},
		{"dns:///orders.:7947", formHost, "orders.:7947"},
		{"srv:///_lock._tcp.orders", formService, "_lock._tcp.orders"},
		{"file:///etc/orders/peers", formFile, filepath.FromSlash("/etc/orders/peers")},
		{"file:///a b%20#c", formFile, filepath.FromSlash("/a b%20#c")},
	} {
		if kind, got, err := parseJoin(c.entry); err != nil || kind != c.kind || got != c.want {
			t.Errorf("%q: %v %q, %v; want %v %q", c.entry, kind, got, err, c.kind, c.want)
		}
	}
	for _, entry := range []string{
		"", "a", ":1", "a:0", "a:99999", "a b:1", "a:1,b:1", "a..b:1", "a/b:1", "http://a:1", "DNS:///a:1",
		"dns://a:1", "dns:///a", "dns:///",
		"dns://8.8.8.8/a:1", "srv:///", "srv://a", "srv:///a:1", "srv:///a b", "srv:///a/b", "file://", "file:///",
		"file://peers", "file:///a\x00b", "://",
		"dns:////a:1", "föö:1", strings.Repeat("a", 300) + ":1", "file:///" + strings.Repeat("a", 5000),
		strings.Repeat("x", 9000) + "://",
	} {
		err := Check(entry)
		if err == nil || !strings.Contains(err.Error(), joinForms) {
			t.Errorf("%q: %v, want the accepted forms", entry, err)
		} else if len(err.Error()) > 500 {
			t.Errorf("the error about an entry of %d bytes has %d", len(entry), len(err.Error()))
		}
	}
}

func TestListsAreReadWholeOrNotAtAll(t *testing.T) {
	for text, want := range map[string]string{
		"":                                       "",
		"a:1\nb:2\n":                             "a:1 b:2",
		"a:1\r\n\r\n  b:2  # the second\r\n#c:3": "a:1 b:2",
		"\xef\xbb\xbfa:1":                        "a:1",
		"[fd00::1]:7947":                         "[fd00::1]:7947",
	} {
		if got, err := parseList([]byte(text)); err != nil || strings.Join(got, " ") != want {
			t.Errorf("%q: %q, %v; want %q", text, got, err, want)
		}
	}
	for text, want := range map[string]string{
		"a:1\nb":                         "line 2",
		"a:1 b:2":                        "line 1",
		"a:1\x00":                        "line 1",
		"\xff\xfea\x00:\x001\x00":        "line 1",
		"dns:///a:1":                     "line 1",
		strings.Repeat("a:1\n", 1025):    "1025 addresses are more than 1024",
		strings.Repeat("\xff\n\x01", 99): "line 1",
	} {
		got, err := parseList([]byte(text))
		if err == nil || got != nil && len(got) <= maxListAddrs || !strings.Contains(err.Error(), want) {
			t.Errorf("%.20q: %q, %v; want an error that says %q", text, got, err, want)
		}
	}
}

func FuzzList(f *testing.F) {
	f.Add([]byte("# peers\n10.0.0.1:7947\norders-1.orders:7947 # here\r\n\n[fd00::1]:7947"))
	f.Add([]byte("\xef\xbb\xbfa:1\nb"))
	f.Fuzz(func(t *testing.T, text []byte) {
		addrs, err := parseList(text)
		if err != nil {
			if len(err.Error()) > 2*maxErrorBytes || strings.ContainsAny(err.Error(), "\n\x00") {
				t.Fatalf("the error is no line for people: %q", err)
			}
			return
		}
		for _, addr := range addrs {
			if host, port, err := net.SplitHostPort(addr); err != nil || host == "" || port == "" ||
				!bytes.Contains(text, []byte(addr)) {
				t.Fatalf("%q was read out of %q", addr, text)
			}
		}
		if again, err := parseList([]byte(strings.Join(addrs, "\n"))); err != nil || !slices.Equal(again, addrs) {
			t.Fatalf("%q came back as %q, %v", addrs, again, err)
		}
	})
}

func FuzzJoin(f *testing.F) {
	for _, entry := range []string{"a:1", "dns:///a:1", "srv:///_a._tcp.b", "file:///a/b", "dns://8.8.8.8/a:1",
		"[fd00::1%eth0]:1"} {
		f.Add(entry)
	}
	f.Fuzz(func(t *testing.T, entry string) {
		kind, what, err := parseJoin(entry)
		if (err == nil) != (Check(entry) == nil) {
			t.Fatal("Check differs")
		}
		if err != nil {
			if len(err.Error()) > 2000 || !strings.Contains(err.Error(), joinForms) {
				t.Fatalf("%q", err)
			}
			return
		}
		host, ok := Host(entry)
		if ok != (kind == formHost) || ok && host == "" || what == "" || strings.Contains(what, "\x00") {
			t.Fatalf("%q is %v %q, host %q", entry, kind, what, host)
		}
		if kind == formHost {
			if again, addr, err := parseJoin("dns:///" + what); err != nil || again != kind || addr != what {
				t.Fatalf("%q is good and dns:///%s is not: %v", entry, what, err)
			}
		}
	})
}

// write replaces a file atomically.
func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path+".new", []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(path+".new", path); err != nil {
		t.Fatal(err)
	}
}

func TestFileTroubleIsAnErrorAndNeverAList(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "huge"), strings.Repeat("#", maxListBytes+1))
	write(t, filepath.Join(dir, "most"), strings.Repeat("#", maxListBytes))
	write(t, filepath.Join(dir, "binary"), "\x7fELF\x00\x00")
	for path, want := range map[string]string{
		dir: "is a directory", filepath.Join(dir, "none"): "none",
		filepath.Join(dir, "huge"): "more than 65536 bytes", filepath.Join(dir, "binary"): "line 1",
		os.DevNull: "not a regular file",
	} {
		synctest.Test(t, func(t *testing.T) {
			if got, err := (&listFile{path: path}).list(t.Context()); err == nil || got != nil ||
				!strings.Contains(err.Error(), want) {
				t.Errorf("%s: %q, %v; want %q", path, got, err, want)
			}
		})
	}
	synctest.Test(t, func(t *testing.T) {
		if got, err := (&listFile{path: filepath.Join(dir, "most")}).list(t.Context()); err != nil || len(got) > 0 {
			t.Errorf("%q, %v", got, err)
		}
	})
}

// TestAHalfWrittenFileDoesNotCount checks that a file is not used while its writer pauses in the
// middle of an address. The file is then well-formed but incomplete.
func TestAHalfWrittenFileDoesNotCount(t *testing.T) {
	path := filepath.Join(t.TempDir(), "peers")
	synctest.Test(t, func(t *testing.T) {
		f := &listFile{path: path}
		list := func() string {
			ctx, cancel := context.WithTimeout(t.Context(), resolveWithin)
			defer cancel()
			addrs, err := f.list(ctx)
			return fmt.Sprint(addrs, err)
		}
		write(t, path, "10.0.0.1:7947\n10.0.0.2:7947\n")
		if got := list(); got != "[10.0.0.1:7947 10.0.0.2:7947] <nil>" {
			t.Fatal(got)
		}
		began := time.Now()
		if got := list(); got != "[10.0.0.1:7947 10.0.0.2:7947] <nil>" || time.Since(began) > 0 {
			t.Fatalf("%s after %v: a list that has not changed must not be waited for", got, time.Since(began))
		}
		write(t, path, "10.0.0.1:7947\n10.0.0.2:79")
		go func() {
			time.Sleep(listSettles / 2)
			write(t, path, "10.0.0.1:7947\n10.0.0.2:7947\n10.0.0.3:7947\n")
		}()
		if got := list(); got != "[10.0.0.1:7947 10.0.0.2:7947 10.0.0.3:7947] <nil>" {
			t.Errorf("%s: half a file has counted", got)
		}
		stop := time.Now().Add(time.Minute)
		go func() {
			for i := 0; time.Now().Before(stop); i++ {
				write(t, path, fmt.Sprintf("10.0.0.1:%d\n", 1000+i))
				time.Sleep(listSettles * 3 / 4)
			}
		}()
		time.Sleep(time.Second)
		if got := list(); !strings.Contains(got, "changed in every attempt") {
			t.Errorf("%s: a file that never rests has counted", got)
		}
		time.Sleep(time.Minute)
	})
}
