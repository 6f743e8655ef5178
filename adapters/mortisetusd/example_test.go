package mortisetusd_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"

	"github.com/tus/tusd/v2/pkg/filestore"
	"github.com/tus/tusd/v2/pkg/handler"

	"github.com/mortise-lock/mortise"
	"github.com/mortise-lock/mortise/adapters/mortisetusd"
)

// Each instance of a service runs this. All have the same files.
func Example() {
	ctx := context.Background()
	node, err := mortise.Start(ctx, mortise.Config{}) // a group of one; a service has three
	if err != nil {
		panic(err)
	}
	defer func() { _ = node.Leave(ctx) }()
	dir, err := os.MkdirTemp("", "uploads")
	if err != nil {
		panic(err)
	}
	defer func() { _ = os.RemoveAll(dir) }()

	composer := handler.NewStoreComposer()
	filestore.New(dir).UseIn(composer) // for example a bucket that all instances use
	mortisetusd.New(node, "uploads/").UseIn(composer)
	uploads, err := handler.NewHandler(handler.Config{BasePath: "/files/", StoreComposer: composer})
	if err != nil {
		panic(err)
	}
	server := httptest.NewServer(http.StripPrefix("/files/", uploads))
	defer server.Close()

	request, err := http.NewRequest("POST", server.URL+"/files/", nil)
	if err != nil {
		panic(err)
	}
	request.Header.Set("Tus-Resumable", "1.0.0")
	request.Header.Set("Upload-Length", "5")
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		panic(err)
	}
	defer func() { _ = answer.Body.Close() }()
	fmt.Println(answer.Status)
	// Output:
	// 201 Created
}
