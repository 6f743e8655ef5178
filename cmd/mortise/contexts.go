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

// This file is the file of contexts: how each of several clusters is reached, by name. It holds no
// secrets, only the names of files.

// contextsFile is the file of contexts.
type contextsFile struct {
	Contexts map[string]clusterContext `json:"contexts"`
}

// clusterContext says how one cluster is reached. Its fields are those of flags.
type clusterContext struct {
	Join          []string `json:"join"`
	Cluster       string   `json:"cluster"`
	SecretFile    string   `json:"secret_file"`
	TLSCert       string   `json:"tls_cert"`
	TLSKey        string   `json:"tls_key"`
	TLSCA         string   `json:"tls_ca"`
	TLSServerName string   `json:"tls_server_name"`
	TLSPeers      []string `json:"tls_peers"`
	Insecure      bool     `json:"insecure"`
	EnvPrefix     string   `json:"env_prefix"`

	Secret string `json:"secret"` // only to refuse it
}

// useContext enters the chosen context, if any, as flags would, except where there are such flags.
// A variable of the environment that says something else is a mistake: neither wins silently.
func (c *call) useContext() error {
	name := cmp.Or(c.context, os.Getenv(prefix+"_CONTEXT"))
	if name == "" {
		return nil
	}
	path, err := contextsPath()
	if err != nil {
		return usageError(err.Error())
	}
	chosen, err := readContext(path, name)
	if err != nil {
		return usageError(err.Error())
	}
	if chosen.EnvPrefix != "" && !c.prefixSet {
		c.prefix = chosen.EnvPrefix
	}
	if err := c.apply(name, chosen.variables(filepath.Dir(path))); err != nil {
		return usageError(err.Error())
	}
	if file := c.changed["SECRET_FILE"]; file != "" {
		c.warnOfOthers(file)
	}
	return nil
}

// contextsPath returns where the file of contexts is.
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

// readContext reads one context of the file.
func readContext(path, name string) (clusterContext, error) {
	fail := func(err error) (clusterContext, error) {
		return clusterContext{}, fmt.Errorf("the file of contexts, %s: %w", path, err)
	}
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return fail(fmt.Errorf("it does not exist, and the context %q is looked for in it", name))
	}
	if err != nil {
		return fail(err)
	}
	if perm := info.Mode().Perm(); perm&0o022 != 0 && runtime.GOOS != "windows" {
		return fail(fmt.Errorf("others may change it (mode %04o), and so which cluster is asked: run chmod 600 on it",
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
			return fail(fmt.Errorf("context %q has a secret in it: write the secret to a file of its own, and its path as secret_file", other))
		}
	}
	one, there := all.Contexts[name]
	if !there {
		names := slices.Sorted(maps.Keys(all.Contexts))
		return fail(fmt.Errorf("it has no context %q; it has: %s", name, cmp.Or(strings.Join(names, ", "), "none")))
	}
	return one, nil
}

// variables are what a context sets, by the names of variables. Paths stand relative to the file.
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
		"TLS_SERVER_NAME": x.TLSServerName, "TLS_PEERS": strings.Join(x.TLSPeers, ","),
	}
	if x.Insecure {
		all["INSECURE"] = "true"
	}
	maps.DeleteFunc(all, func(_, value string) bool { return value == "" })
	return all
}

// apply sets what no flag has set. A flag that chooses secret, certificates or neither also ends
// what the context says of the others.
func (c *call) apply(name string, variables map[string]string) error {
	chosen := map[string]bool{}
	for variable := range c.changed {
		chosen[security(variable)] = true
	}
	delete(chosen, "")
	for _, variable := range slices.Sorted(maps.Keys(variables)) {
		kind := security(variable)
		if c.changed[variable] != "" || kind != "" && len(chosen) > 0 && !chosen[kind] {
			continue
		}
		others := []string{variable}
		if variable == "SECRET_FILE" {
			others = append(others, "SECRET")
		}
		for _, other := range others {
			set := strings.TrimSpace(os.Getenv(c.prefix + "_" + other))
			if set != "" && (set != variables[variable] || other != variable) {
				return fmt.Errorf("the context %q and the variable %s_%s say different things: unset the variable, or name no context", name, c.prefix, other)
			}
		}
		c.changed[variable] = variables[variable]
	}
	return nil
}

// security returns which kind of security a variable belongs to, "" if to none.
func security(variable string) string {
	switch {
	case strings.HasPrefix(variable, "TLS_"):
		return "TLS"
	case variable == "SECRET_FILE", variable == "INSECURE":
		return variable
	}
	return ""
}

// warnOfOthers says that other users may read or replace a file of secrets. Group rights are left
// to those who grant them.
func (c *call) warnOfOthers(path string) {
	info, err := os.Stat(path)
	if err != nil || runtime.GOOS == "windows" { // reading it says so
		return
	}
	if perm := info.Mode().Perm(); perm&0o007 != 0 {
		c.warn("context", fmt.Errorf("%s has the mode %04o: every user of this machine can read or replace the secret; "+
			"run chmod 600 %[1]s, and make a new one", path, perm))
	}
}
