package fence_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/mortise-lock/mortise"
	"github.com/mortise-lock/mortise/fence"
)

// section is a store that runs its function, or not, and then fails, or not.
type section struct {
	fence.Store
	runs  bool
	fails error
}

func (s section) Do(ctx context.Context, _ string, _ mortise.Token, fn func(context.Context) error) error {
	if s.runs {
		if err := fn(ctx); err != nil {
			return err
		}
	}
	return s.fails
}

// TestWhatAGuardTells compares the whole answer, the calls of the handler and those of Failed, for
// each way in which a store ends, with and without Failed.
func TestWhatAGuardTells(t *testing.T) {
	down := errors.New("down")
	text := map[string]string{"Content-Type": "text/plain; charset=utf-8", "X-Content-Type-Options": "nosniff",
		"Cache-Control": "no-store"}
	for _, row := range []struct {
		name    string
		store   section
		status  int
		body    string
		headers map[string]string
		told    bool
	}{
		{"good", section{runs: true}, 200, "5 /orders/42", map[string]string{}, false},
		{"it fails before", section{fails: down}, 503, "fence: the token could not be compared\n", text, true},
		{"it fails after", section{runs: true, fails: down}, 200, "5 /orders/42", map[string]string{}, true},
		{"stale", section{fails: &fence.StaleError{Resource: "a/b", Token: 5, Highest: 6}}, 412,
			"fence: token 5 of \"a/b\" is older than 6, the highest seen\n", map[string]string{"Mortise-Token": "5",
				"Mortise-Highest": "6", "Mortise-Resource": "a%2Fb"}, false},
		{"no token", section{fails: fence.ErrNoToken}, 428, "fence: no token\n", text, false},
		{"a bad token", section{fails: errors.Join(fence.ErrBadToken, down)}, 400, "fence: not a token: down\n", text,
			false},
		{"a bad resource", section{fails: fence.ErrBadResource}, 400, "fence: not a resource\n", text, false},
	} {
		for _, tells := range []bool{true, false} {
			name, told := fmt.Sprintf("%s, Failed %v", row.name, tells), ""
			request := httptest.NewRequest("PUT", "/orders/42", nil)
			request.Header.Set(fence.TokenHeader, "5")
			guard := fence.Guard{Store: row.store, Resource: func(r *http.Request) string { return "r" }}
			if tells {
				guard.Failed = func(r *http.Request, err error) { told += fmt.Sprint(r == request, err) }
			}
			answer := httptest.NewRecorder()
			guard.Wrap(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				token, _ := mortise.TokenFrom(r.Context())
				w.Header()["Content-Type"] = nil
				fmt.Fprint(w, uint64(token), " ", r.URL.Path)
			})).ServeHTTP(answer, request)
			result, want := answer.Result(), maps.Clone(row.headers)
			if row.status == 412 {
				maps.Copy(want, text)
			}
			got := map[string]string{}
			for key, values := range result.Header {
				got[key] = strings.Join(values, "|")
			}
			delete(got, "Content-Type")
			if row.status != 200 {
				got["Content-Type"] = result.Header.Get("Content-Type")
			}
			if body, _ := io.ReadAll(result.Body); result.StatusCode != row.status || string(body) != row.body ||
				!maps.Equal(got, want) {
				t.Errorf("%s: %d %q %v, want %d %q %v", name, result.StatusCode, body, got, row.status, row.body, want)
			}
			if wantTold := map[bool]string{true: "true down"}[row.told && tells]; told != wantTold {
				t.Errorf("%s: Failed was told %q, want %q", name, told, wantTold)
			}
		}
	}
}

type noted struct{ sent *http.Request }

func (n *noted) RoundTrip(r *http.Request) (*http.Response, error) {
	n.sent = r
	return nil, errOwn
}

// TestWhatATransportSends compares all headers that are sent, for each option alone, with and
// without a token. A request that is not changed is passed on as it is.
func TestWhatATransportSends(t *testing.T) {
	named := func(r *http.Request) string { return "of " + r.URL.Path + r.Header.Get(fence.TokenHeader) }
	unnamed := func(*http.Request) string { return "" }
	for _, row := range []struct {
		name      string
		transport fence.Transport
		token     mortise.Token
		header    http.Header
		want      string
	}{
		{"no token", fence.Transport{Resource: named}, 0, http.Header{"X": {"1"}}, "map[X:[1]] true"},
		{"a token", fence.Transport{}, 7, http.Header{"X": {"1"}}, "map[Mortise-Token:[7] X:[1]] false"},
		{"a token, and no headers", fence.Transport{Require: true}, 7, nil, "map[Mortise-Token:[7]] false"},
		{"a resource", fence.Transport{Resource: named}, 7, http.Header{},
			"map[Mortise-Resource:[of%20%2Fa] Mortise-Token:[7]] false"},
		{"no resource", fence.Transport{Resource: unnamed}, 7, http.Header{}, "map[Mortise-Token:[7]] false"},
	} {
		ctx := t.Context()
		if row.token != 0 {
			ctx = mortise.ContextWithToken(ctx, row.token)
		}
		base := &noted{}
		row.transport.Base = base
		r := httptest.NewRequest("PUT", "/a", nil).WithContext(ctx)
		r.Header = row.header
		before := fmt.Sprint(row.header)
		if _, err := row.transport.RoundTrip(r); err != errOwn {
			t.Errorf("%s: %v", row.name, err)
		}
		if got := fmt.Sprint(map[string][]string(base.sent.Header), base.sent == r); got != row.want {
			t.Errorf("%s: sent %s, want %s", row.name, got, row.want)
		}
		if fmt.Sprint(r.Header) != before {
			t.Errorf("%s: the request of the caller has changed: %v", row.name, r.Header)
		}
	}
	for name, row := range map[string]struct {
		body io.ReadCloser
		want string
	}{
		"no body": {nil, "fence: no token in the context of PUT http://u:xxxxx@h/a"},
		"a body":  {&closer{}, "fence: no token in the context of PUT http://u:xxxxx@h/a"},
		"a body that does not close": {closes{errOwn},
			"fence: no token in the context of PUT http://u:xxxxx@h/a\nof fn"},
	} {
		r := httptest.NewRequest("PUT", "http://u:secret@h/a", nil)
		r.Body = row.body
		_, err := (&fence.Transport{Base: &noted{}, Require: true}).RoundTrip(r)
		if err == nil || err.Error() != row.want {
			t.Errorf("%s: %v, want %q", name, err, row.want)
		}
	}
}

type closes struct{ err error }

func (closes) Read([]byte) (int, error) { return 0, io.EOF }
func (c closes) Close() error           { return c.err }

// TestResponseErrors compares the whole error of each kind of response.
func TestResponseErrors(t *testing.T) {
	for _, row := range []struct {
		status int
		header http.Header
		want   string
	}{
		{412, http.Header{"Mortise-Highest": {"6"}, "Mortise-Token": {"5"}, "Mortise-Resource": {"a%2Fb"}},
			"&{Resource:a/b Token:5 Highest:6 Forgotten:false}"},
		{412, http.Header{"Mortise-Highest": {"x"}, "Mortise-Token": {"5"}},
			"&{Resource: Token:5 Highest:0 Forgotten:false}"},
		{412, http.Header{"Mortise-Highest": {"6"}, "Mortise-Token": {"y"}, "Mortise-Resource": {"%z"}},
			"&{Resource: Token:0 Highest:6 Forgotten:false}"},
		{412, http.Header{"Mortise-Token": {"5"}}, "<nil>"},
		{409, http.Header{"Mortise-Highest": {"6"}, "Mortise-Token": {"5"}}, "<nil>"},
		{200, http.Header{"Mortise-Highest": {"6"}}, "<nil>"},
	} {
		err := fence.ResponseError(&http.Response{StatusCode: row.status, Header: row.header})
		got := fmt.Sprint(err)
		if stale := (*fence.StaleError)(nil); errors.As(err, &stale) {
			got = fmt.Sprintf("&%+v", *stale)
		}
		if got != row.want {
			t.Errorf("%d %v: %s, want %s", row.status, row.header, got, row.want)
		}
	}
}

// all returns the names, the modes and the contents below a directory. Directories have no content.
func all(t *testing.T, dir string) map[string]string {
	t.Helper()
	found := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, entry os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := entry.Info()
		if err != nil {
			return err
		}
		text := []byte(nil)
		if !entry.IsDir() {
			if text, err = os.ReadFile(path); err != nil {
				return err
			}
		}
		name, _ := filepath.Rel(dir, path)
		found[name] = fmt.Sprint(info.Mode(), " ", string(text))
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	delete(found, ".")
	return found
}

// TestTheFilesOfAWrite compares all files after writes and refusals: names, modes and contents.
func TestTheFilesOfAWrite(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "report")
	wants := func(when string, want map[string]string) {
		t.Helper()
		if got := all(t, dir); !maps.Equal(got, want) {
			t.Errorf("%s: %q, want %q", when, got, want)
		}
	}
	write := func(token mortise.Token, text string) error {
		return fence.WriteFile(t.Context(), path, token, []byte(text), 0o500)
	}
	want := map[string]string{"report": "-r-x------ seven", "report.lock": "-rwx------ ",
		"report.mark": fmt.Sprintf("-r-x------ mortise fence 1\n7\n%q\n", path)}
	if err := write(7, "seven"); err != nil {
		t.Fatal(err)
	}
	wants("a write", want)
	err := write(6, "six")
	if stale := (*fence.StaleError)(nil); !errors.As(err, &stale) ||
		*stale != (fence.StaleError{Resource: path, Token: 6, Highest: 7}) {
		t.Errorf("a lower token: %+v", err)
	}
	wants("a lower token", want)
	if err := write(7, "again"); err != nil {
		t.Fatal(err)
	}
	want["report"] = "-r-x------ again"
	wants("an equal token", want)
	if err := write(8, ""); err != nil {
		t.Fatal(err)
	}
	want["report"], want["report.mark"] = "-r-x------ ", fmt.Sprintf("-r-x------ mortise fence 1\n8\n%q\n", path)
	wants("a higher token", want)

	dir = filepath.Join(t.TempDir(), "marks")
	const sum = "ca978112ca1bbdcafac231b39a23dc4da786eff8147c4e72b9807785afee48bb" // SHA-256 of "a"
	inside := false
	err = fence.Files{Dir: dir}.Do(t.Context(), "a", 7, func(context.Context) error {
		inside = true
		wants("inside", map[string]string{sum + ".lock": "-rw------- ",
			sum + ".mark": "-rw------- mortise fence 1\n7\n\"a\"\n"})
		return errOwn
	})
	if info, _ := os.Stat(dir); !errors.Is(err, errOwn) || !inside || info.Mode() != os.ModeDir|0o700 {
		t.Errorf("%v, inside %v, %v", err, inside, info.Mode())
	}
	err = fence.Files{Dir: dir}.Advance(t.Context(), "a", 6)
	if stale := (*fence.StaleError)(nil); !errors.As(err, &stale) ||
		*stale != (fence.StaleError{Resource: "a", Token: 6, Highest: 7}) {
		t.Errorf("a lower token: %+v", err)
	}
}

// TestAFileInTheWay puts a directory in the place of each file of a write. The error names it, no
// file that comes later is written, and the next write succeeds.
func TestAFileInTheWay(t *testing.T) {
	mark := func(path string, token int) string {
		return fmt.Sprintf("-rw------- mortise fence 1\n%d\n%q\n", token, path)
	}
	for _, row := range []struct {
		suffix string
		op     string                              // what fails
		after  func(path string) map[string]string // of the files that are no directories
	}{
		{".lock", "open ", func(string) map[string]string { return map[string]string{"report": "-rw------- old"} }},
		{".mark", "read ", func(string) map[string]string {
			return map[string]string{"report": "-rw------- old", "report.lock": "-rw------- "}
		}},
		{".mark.new", "remove ", func(string) map[string]string {
			return map[string]string{"report": "-rw------- old", "report.lock": "-rw------- "}
		}},
		{".new", "remove ", func(path string) map[string]string {
			return map[string]string{"report": "-rw------- old", "report.lock": "-rw------- ", "report.mark": mark(path, 7)}
		}},
		{"", "rename ", func(path string) map[string]string {
			return map[string]string{"report.new": "-rw------- text", "report.lock": "-rw------- ",
				"report.mark": mark(path, 7)}
		}},
	} {
		dir := t.TempDir()
		path := filepath.Join(dir, "report")
		if err := os.WriteFile(path, []byte("old"), 0o600); err != nil {
			t.Fatal(err)
		}
		if row.suffix == "" {
			_ = os.Remove(path)
		}
		if err := os.MkdirAll(filepath.Join(path+row.suffix, "full"), 0o700); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), limit)
		defer cancel()
		err := fence.WriteFile(ctx, path, 7, []byte("text"), 0o600)
		if err == nil || !strings.HasPrefix(err.Error(), row.op+path) ||
			!strings.Contains(err.Error(), path+row.suffix+": ") || ctx.Err() != nil {
			t.Errorf("report%s in the way: %v", row.suffix, err)
		}
		got := all(t, dir)
		maps.DeleteFunc(got, func(_, text string) bool { return strings.HasPrefix(text, "d") })
		if want := row.after(path); !maps.Equal(got, want) {
			t.Errorf("report%s in the way: %q, want %q", row.suffix, got, want)
		}
		if err := os.RemoveAll(path + row.suffix); err != nil {
			t.Fatal(err)
		}
		if err := fence.WriteFile(ctx, path, 7, []byte("text"), 0o600); err != nil {
			t.Errorf("report%s was in the way: %v", row.suffix, err)
		}
		want := map[string]string{"report": "-rw------- text", "report.lock": "-rw------- ", "report.mark": mark(path, 7)}
		if got := all(t, dir); !maps.Equal(got, want) {
			t.Errorf("report%s was in the way: %q, want %q", row.suffix, got, want)
		}
	}
	err := fence.Files{Dir: filepath.Join(t.TempDir(), "no", "parent")}.Advance(t.Context(), "a", 7)
	if path := (*os.PathError)(nil); !errors.As(err, &path) || path.Op != "mkdir" {
		t.Errorf("without a parent directory: %v", err)
	}
	// A file in the place of the directory of the marks.
	path := filepath.Join(t.TempDir(), "marks")
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := (fence.Files{Dir: path}).Advance(t.Context(), "a", 7); err == nil {
		t.Error("a file was taken for a directory")
	}
	for name, err := range map[string]error{
		"no resource": fence.Files{Dir: t.TempDir()}.Advance(t.Context(), "", 7),
		"a bad token": fence.Files{Dir: t.TempDir()}.Advance(t.Context(), "a", 0),
	} {
		if !errors.Is(err, fence.ErrBadResource) && !errors.Is(err, fence.ErrBadToken) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// However a call ends, the next one finds the system lock free: it does not wait, so its context
// may have ended.
func TestTheLockOfAFileIsGivenBack(t *testing.T) {
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	files := fence.Files{Dir: t.TempDir()}
	for range 3 {
		for name, fn := range map[string]func(context.Context) error{
			"works": func(context.Context) error { return nil },
			"fails": func(context.Context) error { return errOwn },
			"bug":   func(context.Context) error { panic("bug") },
		} {
			func() {
				defer func() {
					if recovered := recover(); (recovered != nil) != (name == "bug") {
						t.Errorf("%s: recovered %v", name, recovered)
					}
				}()
				if err := files.Do(ended, "a", 5, fn); errors.Is(err, errOwn) != (name == "fails") || name == "works" &&
					err != nil {
					t.Errorf("%s: %v", name, err)
				}
			}()
			if err := files.Advance(ended, "a", 4); !errors.Is(err, fence.ErrStale) {
				t.Errorf("after %s, a lower token: %v", name, err)
			}
		}
	}
}

// waiting is a context that tells when a function waits for its end.
type waiting struct {
	context.Context
	waits chan bool
}

func (w waiting) Done() <-chan struct{} {
	select {
	case w.waits <- true:
	default:
	}
	return w.Context.Done()
}

// All files of one WriteFile are in one directory, even if the working directory changes while it
// waits.
func TestARelativePathStaysWhereItIs(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	const name = "ca978112ca1bbdcafac231b39a23dc4da786eff8147c4e72b9807785afee48bb" // SHA-256 of "a"
	ctx, written := waiting{t.Context(), make(chan bool, 1)}, make(chan error, 1)
	err := fence.Files{Dir: dir}.Do(t.Context(), "a", 7, func(context.Context) error { // has name.lock
		go func() { written <- fence.WriteFile(ctx, name, 8, []byte("text"), 0o600) }()
		<-ctx.waits
		t.Chdir(t.TempDir())
		return nil
	})
	if err := errors.Join(err, <-written); err != nil {
		t.Fatal(err)
	}
	if text, err := os.ReadFile(filepath.Join(dir, name)); string(text) != "text" {
		t.Errorf("the file says %q, %v", text, err)
	}
	if runtime.GOOS == "windows" { // the working directory cannot be removed
		return
	}
	gone, err := os.MkdirTemp("", "")
	if err != nil {
		t.Fatal(err)
	}
	t.Chdir(gone)
	if err := os.Remove(gone); err != nil {
		t.Fatal(err)
	}
	if err := fence.WriteFile(t.Context(), name, 9, nil, 0o600); err == nil || !strings.Contains(err.Error(), "getwd") {
		t.Errorf("without a working directory: %v", err)
	}
}

// limit is longer than any wait of these tests on a busy machine.
const limit = 30 * time.Second
