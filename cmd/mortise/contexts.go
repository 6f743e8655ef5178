package main

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
)

// The file of contexts gives names to clusters and describes how each cluster is reached. It
// contains the paths of secrets, but no secrets.

type contextsFile struct {
	Contexts map[string]clusterContext `json:"contexts"`
}

type clusterContext struct {
	Join       []string `json:"join"`
	Cluster    string   `json:"cluster"`
	SecretFile string   `json:"secret_file"`
	TLSCert    string   `json:"tls_cert"`
	TLSKey     string   `json:"tls_key"`
	TLSCA      string   `json:"tls_ca"`
	TLSPeers   []string `json:"tls_peers"`
	Insecure   bool     `json:"insecure"`
	EnvPrefix  string   `json:"env_prefix"`

	Secret string `json:"secret"` // rejected: the file must not contain a secret
}

func contextsPath() (string, error) {
	if path := os.Getenv(prefix + "_CONTEXTS"); path != "" {
		return path, nil
	}
	dir, err := os.UserConfigDir()
	if err != nil {
		return "", fmt.Errorf("where is the file of contexts? Set %s_CONTEXTS: %w", prefix, err)
	}
	return filepath.Join(dir, "mortise", "contexts.json"), nil
}

func readContext(path, name string) (clusterContext, error) {
	fail := func(err error) (clusterContext, error) {
		return clusterContext{}, fmt.Errorf("the file of contexts, %s: %w", path, err)
	}
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return fail(fmt.Errorf("it does not exist, so there is no context %q", name))
	}
	if err != nil {
		return fail(err)
	}
	if perm := info.Mode().Perm(); perm&0o022 != 0 && runtime.GOOS != "windows" {
		return fail(fmt.Errorf("other users may write it (mode %04o), so they could redirect this command to another "+
			"cluster: run chmod 600 on it",
			perm))
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return fail(err)
	}
	var all contextsFile
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&all); err != nil {
		return fail(err)
	}
	for other, one := range all.Contexts {
		if one.Secret != "" {
			return fail(fmt.Errorf("context %q contains a secret: move the secret to its own file "+
				"and set secret_file to its path", other))
		}
	}
	one, there := all.Contexts[name]
	if !there {
		names := slices.Sorted(maps.Keys(all.Contexts))
		return fail(fmt.Errorf("it has no context %q; it has: %s", name, cmp.Or(strings.Join(names, ", "), "none")))
	}
	return one, nil
}

// variables returns the variables that a context sets, with paths relative to the directory of the
// file.
func (x clusterContext) variables(dir string) map[string]string {
	at := func(path string) string {
		if path == "" || filepath.IsAbs(path) {
			return path
		}
		return filepath.Join(dir, path)
	}
	all := map[string]string{
		"JOIN": strings.Join(x.Join, ","), "CLUSTER": x.Cluster, "SECRET_FILE": at(x.SecretFile),
		"TLS_CERT_FILE": at(x.TLSCert), "TLS_KEY_FILE": at(x.TLSKey), "TLS_CA_FILE": at(x.TLSCA),
		"TLS_PEERS": strings.Join(x.TLSPeers, ","),
	}
	if x.Insecure {
		all["INSECURE"] = "true"
	}
	maps.DeleteFunc(all, func(_, value string) bool { return value == "" })
	return all
}

func security(variable string) string {
	switch {
	case strings.HasPrefix(variable, "TLS_"):
		return "TLS"
	case variable == "SECRET_FILE", variable == "INSECURE":
		return variable
	}
	return ""
}
