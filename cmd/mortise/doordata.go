package main

import (
	"context"
	"embed"
	"encoding/json"
	"net/http"
	"time"

	"github.com/mortise-lock/mortise"
)

// This file is the part of the HTTP API that reads and writes the data of keys, names the leader of
// an election, and describes the API itself.

// stored is the part of asks that this file uses.
type stored interface {
	get(ctx context.Context, key string) (data []byte, revision uint64, err error)
	put(ctx context.Context, key string, data []byte, revision uint64) (uint64, error)
	key(ctx context.Context, key string) (mortise.KeyInfo, error)
}

type dataShown struct {
	Key      string `json:"key"`
	Revision uint64 `json:"revision,string"`
	Data     []byte `json:"data,omitempty"` // base64
}

func dataOf(ctx context.Context, from stored, key string) (any, error) {
	data, revision, err := from.get(ctx, key)
	return dataShown{Key: key, Revision: revision, Data: data}, err
}

type leaderShown struct {
	Name   string        `json:"name"` // of the election
	Leader string        `json:"leader,omitempty"`
	Value  string        `json:"value,omitempty"`
	Token  mortise.Token `json:"token,omitempty"`
	Since  *time.Time    `json:"since,omitempty"`
}

// leaderOf names the leader of an election. A candidate requests the lock whose key is the name of
// the election, as package election does.
func leaderOf(ctx context.Context, from stored, election string) (any, error) {
	shown := leaderShown{Name: election}
	k, err := from.key(ctx, election)
	// During the grace of a new group, the key has a queue but no holder.
	if err == nil && len(k.Queue) > 0 && k.Queue[0].Token != 0 {
		first := k.Queue[0]
		shown.Leader, shown.Value, shown.Token, shown.Since = first.Holder, first.Value, first.Token, &first.Since
	}
	return shown, err
}

//go:embed openapi.json
var openAPI embed.FS

// description returns the description of the HTTP API in the form of OpenAPI 3.1.
func description(context.Context, *http.Request) (any, error) {
	text, err := openAPI.ReadFile("openapi.json")
	return json.RawMessage(text), err
}
