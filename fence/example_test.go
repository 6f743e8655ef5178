package fence_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"

	"github.com/mortise-lock/mortise"
	"github.com/mortise-lock/mortise/fence"
)

// A holder that was stopped for too long tries to write. The resource has seen a higher token and
// refuses the write.
func Example() {
	ctx := context.Background()
	node, err := mortise.Start(ctx, mortise.Config{})
	if err != nil {
		panic(err)
	}
	defer func() { _ = node.Leave(ctx) }()
	var mark fence.Mark

	first, err := node.Lock(ctx, "orders/42")
	if err != nil {
		panic(err)
	}
	_ = first.Unlock(ctx) // stands for a lock that is lost without the holder's knowledge
	second, err := node.Lock(ctx, "orders/42")
	if err != nil {
		panic(err)
	}
	defer func() { _ = second.Unlock(ctx) }()

	fmt.Println(mark.Advance(ctx, "orders/42", second.Token()))
	err = mark.Advance(ctx, "orders/42", first.Token())
	fmt.Println(errors.Is(err, fence.ErrStale))
	// Output:
	// <nil>
	// true
}

// Do cancels the context of the older holder, and makes a newer holder wait until the older one's
// fn has returned.
func ExampleMark_Do() {
	ctx := context.Background()
	var mark fence.Mark
	err := mark.Do(ctx, "orders/42", 5, func(ctx context.Context) error {
		if err := mark.Advance(ctx, "orders/42", 6); err != nil { // another holder calls Advance while fn runs
			return err
		}
		return context.Cause(ctx)
	})
	fmt.Println(err)
	// Output: fence: token 5 of "orders/42" is older than 6, the highest seen
}

// The client sends the token of its lock and the server compares it with the mark. The handler gets
// the token from its context.
func ExampleGuard() {
	ctx := context.Background()
	guard := fence.Guard{
		Store:    &fence.Mark{},
		Resource: func(r *http.Request) string { return strings.TrimPrefix(r.URL.Path, "/") },
	}
	server := httptest.NewServer(guard.Wrap(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		token, _ := mortise.TokenFrom(r.Context())
		_, _ = fmt.Fprintln(w, "written under", token)
	})))
	defer server.Close()

	node, err := mortise.Start(ctx, mortise.Config{})
	if err != nil {
		panic(err)
	}
	defer func() { _ = node.Leave(ctx) }()
	client := &http.Client{Transport: &fence.Transport{}}
	put := func(ctx context.Context) error {
		request, err := http.NewRequestWithContext(ctx, http.MethodPut, server.URL+"/orders/42", nil)
		if err != nil {
			return err
		}
		response, err := client.Do(request)
		if err != nil {
			return err
		}
		defer func() { _ = response.Body.Close() }()
		fmt.Println(response.Status)
		return fence.ResponseError(response)
	}
	err = node.Do(ctx, "orders/42", func(ctx context.Context, _ mortise.Token) error { return put(ctx) })
	fmt.Println(err)
	err = put(mortise.ContextWithToken(ctx, 5)) // the token of a former holder
	fmt.Println(errors.Is(err, fence.ErrStale))
	_ = put(ctx)
	// Output:
	// 200 OK
	// <nil>
	// 412 Precondition Failed
	// true
	// 428 Precondition Required
}

// Only the newest holder can write the file.
func ExampleWriteFile() {
	ctx := context.Background()
	dir, err := os.MkdirTemp("", "fence")
	if err != nil {
		panic(err)
	}
	defer func() { _ = os.RemoveAll(dir) }()
	path := filepath.Join(dir, "report.txt")

	fmt.Println(fence.WriteFile(ctx, path, 6, []byte("of the new holder"), 0o644))
	err = fence.WriteFile(ctx, path, 5, []byte("of the old holder"), 0o644)
	fmt.Println(errors.Is(err, fence.ErrStale))
	text, err := os.ReadFile(path)
	fmt.Println(string(text), err)
	// Output:
	// <nil>
	// true
	// of the new holder <nil>
}

// The type webStore in bucket_test.go shows the two methods that a store with ETags needs.
func ExamplePut() {
	ctx := context.Background()
	server := httptest.NewServer(&bucket{})
	defer server.Close()
	store := webStore{server.URL}

	fmt.Println(fence.Put(ctx, store, "report.txt", 6, []byte("of the new holder")))
	fmt.Println(fence.Put(ctx, store, "report.txt", 5, []byte("of the old holder")))
	// Output:
	// <nil>
	// fence: token 5 of "report.txt" is older than 6, the highest seen
}

// This example prints the statement that Row.Update runs.
func ExampleRow_Statement() {
	row := fence.Row{Dialect: fence.PostgreSQL, Table: "orders"}
	query, args, err := row.Statement(42, 7, "state = $1", "paid")
	fmt.Println(strings.Replace(query, " WHERE", "\nWHERE", 1))
	fmt.Println(args, err)
	// Output:
	// UPDATE "orders" SET state = $1, "fence_token" = $2
	// WHERE "id" = $3 AND ("fence_token" IS NULL OR "fence_token" <= $4)
	// [paid 7 42 7] <nil>
}

func ExampleTable_Schema() {
	text, err := fence.Table{Dialect: fence.PostgreSQL}.Schema()
	fmt.Println(strings.Replace(text, " (", "\n(", 1), err)
	// Output:
	// CREATE TABLE IF NOT EXISTS "mortise_fence"
	// (resource text NOT NULL PRIMARY KEY, token bigint NOT NULL) <nil>
}

// The next holder of the lock repeats a step and gets the result of the first call.
func ExampleMemo() {
	ctx := context.Background()
	var memo fence.Memo
	charge := func(context.Context) ([]byte, error) {
		fmt.Println("charging")
		return []byte("receipt 1"), nil
	}
	for _, token := range []mortise.Token{5, 6} {
		receipt, err := memo.Do(ctx, fence.Step{Resource: "orders/42", Token: token, ID: "request 7"}, charge)
		fmt.Println(string(receipt), err)
	}
	// Output:
	// charging
	// receipt 1 <nil>
	// receipt 1 <nil>
}
