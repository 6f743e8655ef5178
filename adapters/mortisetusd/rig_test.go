package mortisetusd

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"testing"

	"github.com/tus/tusd/v2/pkg/filestore"
	"github.com/tus/tusd/v2/pkg/handler"

	"github.com/mortise-lock/mortise"
	"github.com/mortise-lock/mortise/internal/lab/trio"
)

func TestMain(m *testing.M) { trio.Main(m, serve) }

// serve runs in a process of its own: a server of tusd whose files are shared by three processes.
func serve(_ context.Context, node *mortise.Node) error {
	composer := handler.NewStoreComposer()
	filestore.New(os.Getenv("FILES")).UseIn(composer)
	New(node, "uploads/").UseIn(composer)
	h, err := handler.NewHandler(handler.Config{BasePath: "/files/", StoreComposer: composer})
	if err != nil {
		return err
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	file := filepath.Join(os.Getenv("ADDRESSES"), node.Status().Name)
	if err := os.WriteFile(file, []byte(listener.Addr().String()), 0o600); err != nil {
		return err
	}
	fmt.Println("serves")
	return http.Serve(listener, http.StripPrefix("/files/", h))
}

// client sends requests to the servers, as a browser does.
type client struct {
	t    *testing.T
	urls []string // of process 0, 1, 2
}

func newClient(t *testing.T, addresses string) client {
	t.Helper()
	c := client{t: t}
	for i := range 3 {
		address, err := os.ReadFile(filepath.Join(addresses, fmt.Sprintf("node-%d", i)))
		if err != nil {
			t.Fatal(err)
		}
		c.urls = append(c.urls, "http://"+string(address))
	}
	return c
}

// do sends a request to a process, and fails the test unless the answer has the status. It returns
// the header of the answer.
func (c client) do(process int, method, path string, body io.Reader, status int, header ...string) http.Header {
	c.t.Helper()
	answer, err := c.send(process, method, path, body, header...)
	if err != nil {
		c.t.Fatal(err)
	}
	defer answer.Body.Close()
	if answer.StatusCode != status {
		text, _ := io.ReadAll(answer.Body)
		c.t.Fatalf("%s %s at process %d: %s: %s", method, path, process, answer.Status, text)
	}
	return answer.Header
}

func (c client) send(process int, method, path string, body io.Reader, header ...string) (*http.Response, error) {
	r, err := http.NewRequestWithContext(c.t.Context(), method, c.urls[process]+path, body)
	if err != nil {
		return nil, err
	}
	r.Header.Set("Tus-Resumable", "1.0.0")
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	return http.DefaultClient.Do(r)
}
