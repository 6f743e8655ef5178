package storage

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"github.com/mortise-lock/mortise/raftlog"
)

const metaPage = 4096

func testMeta(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	if err := createMeta(OSFS(), dir); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, metaName)
	m, err := openMeta(path)
	if err != nil {
		t.Fatal(err)
	}
	for i := range 3 {
		if err := m.put(map[string][]byte{"a": fmt.Append(nil, i), "large": make([]byte, 9000+i)}); err != nil {
			t.Fatal(err)
		}
	}
	if err := m.close(); err != nil {
		t.Fatal(err)
	}
	return path
}

func readMeta(path string) ([]byte, error) {
	m, err := openMeta(path)
	if err != nil {
		return nil, err
	}
	return m.encode(), m.close()
}

func writeFile(t *testing.T, path string, data []byte) {
	t.Helper()
	if err := os.WriteFile(path, data, filePerm); err != nil {
		t.Fatal(err)
	}
}

func readFile(t *testing.T, path string) []byte {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// A flipped bit must be refused or harmless, for later writes too, and must never end the
// process. With MORTISE_DAMAGE=200, the test flips 300,000 bits, one at a time.
func TestMetaBitFlips(t *testing.T) {
	path := testMeta(t)
	whole := readFile(t, path)
	want, err := readMeta(path)
	if err != nil {
		t.Fatal(err)
	}
	r := rand.New(rand.NewPCG(1, 1))
	refused, stale := 0, 0
	for n := range damageRounds(1500) {
		data := bytes.Clone(whole)
		bit := r.IntN(len(data) * 8)
		if n%3 == 0 {
			bit = r.IntN(2 * metaPage * 8) // bbolt's two meta pages
		}
		data[bit/8] ^= 1 << (bit % 8)
		writeFile(t, path, data)
		m, err := openMeta(path)
		if err != nil {
			refused++
			if !errors.Is(err, raftlog.ErrCorrupt) {
				t.Fatalf("bit %d of byte %d: refused with another kind: %v", bit%8, bit/8, err)
			}
			continue
		}
		if !bytes.Equal(m.encode(), want) {
			stale++
			t.Errorf("bit %d of byte %d: misread", bit%8, bit/8)
		}
		if n%4 != 0 {
			m.close()
			continue
		}
		err = m.put(map[string][]byte{"b": []byte("new")})
		next := m.encode()
		m.close()
		if err != nil {
			continue
		}
		if got, err := readMeta(path); err == nil && !bytes.Equal(got, next) {
			t.Errorf("bit %d of byte %d: what was written afterwards is misread", bit%8, bit/8)
		}
	}
	if refused == 0 {
		t.Error("no flip was refused: the test sees nothing")
	}
}

func TestMetaTruncated(t *testing.T) {
	path := testMeta(t)
	whole := readFile(t, path)
	want, _ := readMeta(path)
	for size := 0; size < len(whole); size += 512 {
		writeFile(t, path, whole[:size])
		if got, err := readMeta(path); err == nil && !bytes.Equal(got, want) {
			t.Errorf("cut to %d of %d bytes: misread", size, len(whole))
		} else if err != nil && !errors.Is(err, raftlog.ErrCorrupt) {
			t.Errorf("cut to %d of %d bytes: refused with another kind: %v", size, len(whole), err)
		}
	}
}

// The test truncates the file that bbolt has mapped. The next write must fail with a final error.
func TestMetaTruncatedWhileOpen(t *testing.T) {
	path := filepath.Join(t.TempDir(), "d")
	d := mustDir(t, path)
	if err := d.Put(map[string][]byte{"a": []byte("one")}); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(filepath.Join(path, metaName), 0); err != nil {
		t.Fatal(err)
	}
	err := d.Put(map[string][]byte{"a": []byte("two")})
	refused(t, err, raftlog.ErrStorage, metaName, "start the instance again")
	if again := d.Put(nil); again != err {
		t.Errorf("then %v", again)
	}
	if _, again := d.Log(7, 1); again != err {
		t.Errorf("Log: %v", again)
	}
	if got, again := d.Get("a"); string(got) != "one" || again != err {
		t.Errorf("Get: %q, %v", got, again)
	}
	closeDir(t, d)
	_, err = quietDir(path)
	refused(t, err, raftlog.ErrCorrupt, metaName)
}

// A disk error is final, although bbolt might continue.
func TestMetaWriteFails(t *testing.T) {
	path := filepath.Join(t.TempDir(), "d")
	d := mustDir(t, path)
	s := beginLog(t, d, 7, 1)
	d.meta.file.Close()
	err := d.Put(map[string][]byte{"a": nil})
	refused(t, err, raftlog.ErrStorage)
	if again := d.Put(nil); again != err {
		t.Errorf("then %v", again)
	}
	// The log's own files are valid. The log fails when it uses meta.db the next time.
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	if _, again := d.Log(7, 1); again != err {
		t.Errorf("Log: %v", again)
	}
	if err := d.Close(); err != nil {
		t.Error(err)
	}
}

// bbolt does not use an FS, so the test cannot record its operations. It builds the possible states
// from the bytes that a commit has changed. A commit writes its pages, syncs, writes a meta page,
// and syncs.
func TestMetaCrashImages(t *testing.T) {
	path := testMeta(t)
	m, err := openMeta(path)
	if err != nil {
		t.Fatal(err)
	}
	r := rand.New(rand.NewPCG(1, 1))
	scratch := filepath.Join(t.TempDir(), metaName)
	images := 0
	for round := range damageRounds(12) {
		old := m.encode()
		next := m.metaState
		next.generation++
		next.records = map[string][]byte{"round": fmt.Append(nil, round), "large": make([]byte, r.IntN(30000))}
		value := next.encode()
		for commit := range 2 {
			before := readFile(t, path)
			if err := m.commit(value); err != nil {
				t.Fatal(err)
			}
			after := readFile(t, path)
			for n := range 10 {
				images++
				writeFile(t, scratch, commitImage(r, before, after, n))
				got, err := readMeta(scratch)
				if err != nil {
					t.Fatalf("round %d, commit %d, image %d: refused: %v", round, commit, n, err)
				}
				if is := bytes.Equal(got, value); !is && (commit == 1 || !bytes.Equal(got, old)) {
					t.Fatalf("round %d, commit %d, image %d: neither what was there nor what was written", round,
						commit, n)
				}
			}
		}
		m.metaState = next
	}
	t.Logf("%d images opened", images)
	if err := m.close(); err != nil {
		t.Fatal(err)
	}
}

// commitImage returns the file as a crash during a commit may leave it. For even n the crash comes
// before the first sync, for odd n between the first and the second.
func commitImage(r *rand.Rand, before, after []byte, n int) []byte {
	out := bytes.Clone(before)
	if n%2 == 1 || r.IntN(2) == 0 {
		out = extend(out, int64(len(after)))
	}
	p := r.Float64()
	for at := 0; at < len(after); at += sectorBytes {
		meta := at < 2*metaPage
		if n%2 == 1 && !meta || meta == (n%2 == 1) && r.Float64() < p {
			out = overwrite(out, after[at:at+sectorBytes], int64(at))
		}
	}
	return out
}

// meta.db can be created after an interrupted creation.
func TestMetaBegunAnew(t *testing.T) {
	whole := readFile(t, testMeta(t))
	for _, left := range [][]byte{{}, whole[:5000], make([]byte, 32<<10), whole} {
		path := filepath.Join(t.TempDir(), "d")
		if err := os.Mkdir(path, 0o700); err != nil {
			t.Fatal(err)
		}
		writeFile(t, filepath.Join(path, metaName+".tmp"), left)
		writeFile(t, filepath.Join(path, originName+".tmp"), []byte("mor"))
		d := mustDir(t, path)
		if got, err := d.Get("a"); got != nil || err != nil {
			t.Errorf("%q, %v", got, err)
		}
	}
}

// cutFS fails the rename of meta.db, like a power loss before the rename.
type cutFS struct{ FS }

func (c cutFS) Rename(from, to string) error {
	if filepath.Base(to) == metaName {
		return errInjected
	}
	return c.FS.Rename(from, to)
}

// The file gets the name meta.db only when it is complete and durable, because bbolt cannot
// distinguish a torn new file from a damaged old one.
func TestMetaMadeAside(t *testing.T) {
	path := filepath.Join(t.TempDir(), "d")
	_, err := Open(Config{Path: path, Files: cutFS{OSFS()}})
	refused(t, err, raftlog.ErrStorage)
	if _, err := os.Stat(filepath.Join(path, metaName)); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("%s before its rename: %v", metaName, err)
	}
	mustDir(t, path)
}
