package fence_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"sync"

	"github.com/mortise-lock/mortise"
	"github.com/mortise-lock/mortise/fence"
)

// bucket is an HTTP server that stores objects, each with one metadata header. It supports If-Match
// and If-None-Match.
type bucket struct {
	mu       sync.Mutex
	objects  map[string]object
	writes   int
	onWrite  func(object)
	meddling func(*bucket)
}

type object struct {
	token, etag string
	data        []byte
}

const metaToken = "X-Meta-Mortise-Token"

func (b *bucket) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	data, err := io.ReadAll(r.Body)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	if b.meddling != nil && r.Method == http.MethodPut {
		b.meddling(b)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	o, exists := b.objects[r.URL.Path]
	if r.Method == http.MethodPut {
		if match := r.Header.Get("If-Match"); match != "" && (!exists || match != o.etag) ||
			r.Header.Get("If-None-Match") == "*" && exists {
			w.WriteHeader(http.StatusPreconditionFailed)
			return
		}
		b.put(r.URL.Path, r.Header.Get(metaToken), data)
		return
	}
	if !exists {
		w.WriteHeader(http.StatusNotFound)
		return
	}
	w.Header().Set("ETag", o.etag)
	if o.token != "" {
		w.Header().Set(metaToken, o.token)
	}
	_, _ = w.Write(o.data)
}

func (b *bucket) put(path, token string, data []byte) {
	b.writes++
	o := object{token: token, etag: strconv.Quote(strconv.Itoa(b.writes)), data: data}
	if b.objects == nil {
		b.objects = map[string]object{}
	}
	b.objects[path] = o
	if b.onWrite != nil {
		b.onWrite(o)
	}
}

// webStore is a [fence.ObjectStore] for HTTP servers that support ETags.
type webStore struct{ base string }

func (s webStore) Head(ctx context.Context, name string) (fence.Object, error) {
	response, err := s.send(ctx, http.MethodHead, name, nil, nil)
	if err != nil {
		return fence.Object{}, err
	}
	switch response.StatusCode {
	case http.StatusNotFound:
		return fence.Object{}, fence.ErrMissing
	case http.StatusOK:
	default:
		return fence.Object{}, fmt.Errorf("HEAD %s: %s", name, response.Status)
	}
	found := fence.Object{Version: response.Header.Get("ETag")}
	if text := response.Header.Get(metaToken); text != "" {
		if found.Token, err = fence.ParseToken(text); err != nil {
			return fence.Object{}, err
		}
	}
	return found, nil
}

func (s webStore) PutIf(ctx context.Context, name, version string, token mortise.Token, data []byte) error {
	header := http.Header{metaToken: {fence.FormatToken(token)}}
	if version == "" {
		header.Set("If-None-Match", "*")
	} else {
		header.Set("If-Match", version)
	}
	response, err := s.send(ctx, http.MethodPut, name, header, data)
	if err != nil {
		return err
	}
	switch response.StatusCode {
	case http.StatusOK:
		return nil
	case http.StatusPreconditionFailed:
		return fence.ErrChanged
	}
	return fmt.Errorf("PUT %s: %s", name, response.Status)
}

func (s webStore) send(ctx context.Context, method, name string, header http.Header, data []byte) (*http.Response,
	error) {
	request, err := http.NewRequestWithContext(ctx, method, s.base+"/"+name, bytes.NewReader(data))
	if err != nil {
		return nil, err
	}
	for key, values := range header {
		request.Header[key] = values
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return nil, err
	}
	return response, response.Body.Close()
}
