package mortisetusd

import (
	"bytes"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/mortise-lock/mortise/internal/lab/trio"
)

// Three servers of tusd share their files. A client uploads to one server, loses its connection
// there, and continues at another one, which interrupts the first request. Then the server that
// receives the upload is killed, and the client continues at the last one.
func TestAProcessIsKilledInAnUpload(t *testing.T) {
	files, addresses := t.TempDir(), t.TempDir()
	f := trio.Start(t, "FILES="+files, "ADDRESSES="+addresses)
	f.Await(3, "serves")
	c := newClient(t, addresses)
	data := bytes.Repeat([]byte("0123456789"), 10_000)
	created := c.do(0, "POST", "/files/", nil, http.StatusCreated, "Upload-Length", strconv.Itoa(len(data)))
	at, err := url.Parse(created.Get("Location"))
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(files, filepath.Base(at.Path))

	interrupted := c.begin(0, at.Path, data[:30_000], 0, file)
	c.offset(1, at.Path, 30_000)
	select {
	case status := <-interrupted:
		if status != http.StatusBadRequest {
			t.Errorf("the interrupted request has the status %d", status)
		}
	case <-time.After(patience):
		t.Errorf("the interrupted request goes on after %v", patience)
	}

	c.begin(1, at.Path, data[30_000:60_000], 30_000, file)
	f.Kill(1)
	offset := c.offset(2, at.Path, 60_000)
	c.do(2, "PATCH", at.Path, bytes.NewReader(data[offset:]), http.StatusNoContent, patch(offset)...)
	if got, err := os.ReadFile(file); err != nil || !bytes.Equal(got, data) {
		t.Errorf("the upload has %d bytes, %v", len(got), err)
	}
}

// begin begins a request that sends the part, and then neither sends more nor ends, like a client
// on a broken connection. It returns when the process has written the part to the file. The channel
// receives the status of the answer, or 0.
func (c client) begin(process int, path string, part []byte, offset int, file string) <-chan int {
	c.t.Helper()
	body, send := io.Pipe()
	c.t.Cleanup(func() { send.Close() }) // ends the goroutine below
	answer := make(chan int, 1)
	go func() {
		response, err := c.send(process, "PATCH", path, body, patch(offset)...)
		if err != nil {
			answer <- 0
			return
		}
		response.Body.Close()
		answer <- response.StatusCode
	}()
	if _, err := send.Write(part); err != nil {
		c.t.Fatal(err)
	}
	limit := time.Now().Add(patience)
	for time.Now().Before(limit) {
		if info, err := os.Stat(file); err == nil && info.Size() == int64(offset+len(part)) {
			return answer
		}
		time.Sleep(5 * time.Millisecond)
	}
	c.t.Fatalf("process %d has not written the part within %v", process, patience)
	return nil
}

// offset returns the offset of the upload, which must be the given one.
func (c client) offset(process int, path string, want int) int {
	c.t.Helper()
	got := c.do(process, "HEAD", path, nil, http.StatusOK).Get("Upload-Offset")
	if got != strconv.Itoa(want) {
		c.t.Fatalf("the offset is %s, want %d", got, want)
	}
	return want
}

func patch(offset int) []string {
	return []string{"Content-Type", "application/offset+octet-stream", "Upload-Offset", strconv.Itoa(offset)}
}
