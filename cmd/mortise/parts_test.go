//go:build unix

package main

import (
	"encoding/json"
	"flag"
	"net/http"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/mortise-lock/mortise"
)

// wording is one request in the words of every client.
type wording struct {
	flags  []string // of mortise run, with the key
	body   string   // the JSON of the agent without the lease, which is that of the Python client
	python string   // the arguments of lock of the Python client
	want   []mortise.Part
}

func wordings() map[string]wording {
	type p = mortise.Part
	return map[string]wording{
		"exclusive": {[]string{"k"}, `{"key":"k"}`, `"k"`, []p{{Key: "k"}}},
		"named": {[]string{"k", "-mode", "exclusive"}, `{"key":"k","mode":"exclusive"}`, `"k", mode="exclusive"`,
			[]p{{Key: "k"}}},
		"shared": {[]string{"k", "-mode", "shared"}, `{"key":"k","mode":"shared"}`, `"k", mode="shared"`,
			[]p{{Key: "k", Mode: mortise.Shared}}},
		"upgradable": {[]string{"k", "-mode", "upgradable"}, `{"key":"k","mode":"upgradable"}`, `"k", mode="upgradable"`,
			[]p{{Key: "k", Mode: mortise.Upgradable}}},
		"permits": {[]string{"k", "-mode", "2 of 5"}, `{"key":"k","mode":"2 of 5"}`, `"k", mode="2 of 5"`,
			[]p{{Key: "k", Mode: mortise.Permits(2, 5)}}},
		"tree": {[]string{"a/b/c", "-tree"}, `{"key":"a/b/c","tree":true}`, `"a/b/c", tree=True`,
			[]p{{Key: "a/b/c", Tree: true}}},
		"shared tree": {[]string{"a/b", "-tree", "-mode", "shared"}, `{"key":"a/b","mode":"shared","tree":true}`,
			`"a/b", mode="shared", tree=True`, []p{{Key: "a/b", Mode: mortise.Shared, Tree: true}}},
		"several": {[]string{"b", "-also", "a", "-also", "c"}, `{"key":"b","also":[{"key":"a"},{"key":"c"}]}`,
			`"b", also=["a", "c"]`, []p{{Key: "b"}, {Key: "a"}, {Key: "c"}}},
		"mixed": {[]string{"a", "-also", "b,mode=shared", "-also", "c/d,tree", "-also", "e/f,mode=shared,tree"},
			`{"key":"a","also":[{"key":"b","mode":"shared"},{"key":"c/d","tree":true},` +
				`{"key":"e/f","mode":"shared","tree":true}]}`,
			`"a", also=[{"key": "b", "mode": "shared"}, {"key": "c/d", "tree": True}, ` +
				`{"key": "e/f", "mode": "shared", "tree": True}]`,
			[]p{{Key: "a"}, {Key: "b", Mode: mortise.Shared}, {Key: "c/d", Tree: true},
				{Key: "e/f", Mode: mortise.Shared, Tree: true}}},
	}
}

// Every client has a word for every mode and part, and what others see of the request are the same
// parts: in the agent's answer, in its JSON and in the table of the command.
func TestEveryClientSaysEveryPart(t *testing.T) {
	i, api := openInn(t, nil, standard), readAPI(t)
	described := api.Paths["/v1/lock"]["post"].RequestBody.Content["application/json"].Schema
	for name, w := range wordings() {
		cmd, o := commandNamed("run"), runOptions{}
		cmd.options = func(fs *flag.FlagSet) action { runFlags(&o, fs); return nil }
		c, _, err := parse(cmd, w.flags, nil, nil)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if got := append([]mortise.Part{{Key: c.words[0], Mode: o.mode, Tree: o.tree}},
			o.also...); !slices.Equal(got, w.want) {
			t.Errorf("%s: the command asks for %+v", name, got)
		}
		var body object
		if err := json.Unmarshal([]byte(w.body), &body); err != nil {
			t.Fatal(err)
		}
		for _, secret := range []string{"", secretFor(t, "one", "lock *", "read *")} {
			body["lease"] = i.lease(secret)
			if fault := api.fault(described, map[string]any(body), "body"); fault != "" {
				t.Errorf("%s: %s", name, fault)
			}
			var lock lockText
			if code, p := i.post(secret, "/v1/lock", body, &lock); code != http.StatusOK || lock.Key != w.want[0].Key {
				t.Errorf("%s: %d %+v %+v", name, code, lock, p)
				continue
			}
			i.shows(name, secret, lock.Token, w.want)
			i.post(secret, "/v1/unlock", object{"lease": body["lease"], "token": lock.Token}, nil)
		}
	}
}

// shows checks that a hold is shown with its parts in the queues of all its keys, and in those of
// the nodes above.
func (i *inn) shows(name, secret string, token mortise.Token, want []mortise.Part) {
	i.t.Helper()
	for at, p := range want {
		queues := []string{p.Key}
		for j := range p.Key {
			if p.Tree && p.Key[j] == '/' {
				queues = append(queues, p.Key[:j])
			}
		}
		for _, key := range queues {
			var info struct {
				Queue []struct {
					Token mortise.Token
					mortise.Part
					Also []mortise.Part
				}
			}
			if code, p := i.get(secret, "/v1/key?key="+key, &info); code != http.StatusOK || len(info.Queue) != 1 {
				i.t.Fatalf("%s: %d %+v %+v", name, code, p, info)
			}
			st := info.Queue[0]
			all := slices.SortedFunc(slices.Values(append(st.Also, st.Part)), byKey)
			if st.Token != token || st.Part != want[at] || !slices.Equal(all, slices.SortedFunc(slices.Values(want), byKey)) {
				i.t.Errorf("%s: %s has %+v, want %+v", name, key, st, want)
			}
		}
	}
}

func byKey(a, b mortise.Part) int { return strings.Compare(a.Key, b.Key) }

func commandNamed(name string) command {
	all := commands()
	return all[slices.IndexFunc(all, func(c command) bool { return c.name == name })]
}

// The table of the Python client is that of the agent.
func TestPythonSaysEveryPart(t *testing.T) {
	python, err := exec.LookPath("python3")
	if err != nil {
		t.Skip("python3 is not there")
	}
	script := "import json\nfrom mortise import Mortise\nm = Mortise.__new__(Mortise)\n" +
		"m._granted = lambda path, terms: print(json.dumps(terms))\n"
	var want []string
	for _, w := range wordings() {
		script += "m.lock(" + w.python + ")\n"
		want = append(want, w.body)
	}
	cmd := exec.Command(python, "-c", script)
	cmd.Env = append(os.Environ(), "PYTHONPATH=python", "PYTHONDONTWRITEBYTECODE=1")
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	lines := strings.Split(strings.TrimSpace(string(out)), "\n")
	if len(lines) != len(want) {
		t.Fatalf("%s", out)
	}
	for i, line := range lines {
		var got, is object
		if json.Unmarshal([]byte(line), &got) != nil || json.Unmarshal([]byte(want[i]), &is) != nil {
			t.Fatal(line)
		}
		a, _ := json.Marshal(got)
		if b, _ := json.Marshal(is); string(a) != string(b) {
			t.Errorf("Python sends %s, want %s", a, b)
		}
	}
}
