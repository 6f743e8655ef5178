// Command publish writes the modules of this tree that users install into a directory, in the
// layout of a module proxy. scripts/publish-check installs everything from this directory, and
// scripts/release reads the checksums of the next release from it.
//
//	go run ./internal/lab/publish DIRECTORY
//
// It writes the root module, locker and the modules below adapters, each with the version in
// doc.go. It reads the files that git would commit.
package main

import (
	"archive/zip"
	"bytes"
	"fmt"
	"io"
	"log"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"
)

func main() {
	log.SetFlags(0)
	if len(os.Args) != 2 {
		log.Fatal("usage: go run ./internal/lab/publish DIRECTORY")
	}
	if err := publish(".", os.Args[1]); err != nil {
		log.Fatal("publish: ", err)
	}
}

func publish(root, proxy string) error {
	version, err := versionOf(root)
	if err != nil {
		return err
	}
	list := exec.Command("git", "ls-files", "-z", "--cached", "--others", "--exclude-standard")
	list.Dir = root
	out, err := list.Output()
	if err != nil {
		return fmt.Errorf("git ls-files: %w", err)
	}
	files := slices.DeleteFunc(strings.Split(string(out), "\x00"), func(name string) bool {
		info, err := os.Lstat(filepath.Join(root, name))
		return name == "" || err != nil || !info.Mode().IsRegular()
	})
	slices.Sort(files)
	rooms := modules(files)
	for _, room := range rooms {
		if room != "." && room != "locker" && path.Dir(room) != "adapters" {
			continue
		}
		if err := write(root, proxy, room, version, content(files, rooms, room)); err != nil {
			return fmt.Errorf("module %s: %w", room, err)
		}
	}
	return nil
}

func versionOf(root string) (string, error) {
	text, err := os.ReadFile(filepath.Join(root, "doc.go"))
	if err != nil {
		return "", err
	}
	if found := regexp.MustCompile(`(?m)^const version = "(v[^"]+)"$`).FindSubmatch(text); found != nil {
		return string(found[1]), nil
	}
	return "", fmt.Errorf("doc.go has no line %q", "const version = ...")
}

func modules(files []string) (rooms []string) {
	for _, name := range files {
		if path.Base(name) == "go.mod" {
			rooms = append(rooms, path.Dir(name))
		}
	}
	return rooms
}

// content returns the files of the module in the directory room, as the go command chooses them.
// These are the files below room that belong to no nested module, and the root's licence if room
// has none.
func content(files, rooms []string, room string) map[string]string {
	in := map[string]string{}
	for _, name := range files {
		within := "."
		for _, other := range rooms {
			if strings.HasPrefix(name, other+"/") && len(other) > len(within) {
				within = other
			}
		}
		if within == room {
			in[strings.TrimPrefix(name, room+"/")] = name
		}
	}
	if in["LICENSE"] == "" {
		in["LICENSE"] = "LICENSE"
	}
	return in
}

// write writes one module in the layout of a module proxy.
func write(root, proxy, room, version string, files map[string]string) error {
	mod, err := os.ReadFile(filepath.Join(root, room, "go.mod"))
	if err != nil {
		return err
	}
	name := regexp.MustCompile(`(?m)^module (\S+)$`).FindSubmatch(mod)
	if name == nil {
		return fmt.Errorf("its go.mod names no module")
	}
	var packed bytes.Buffer
	if err := pack(&packed, root, string(name[1])+"@"+version+"/", files); err != nil {
		return err
	}
	dir := filepath.Join(proxy, filepath.FromSlash(string(name[1])), "@v")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	info := fmt.Sprintf(`{"Version":%q,"Time":%q}`, version, time.Now().UTC().Format(time.RFC3339))
	for file, data := range map[string][]byte{
		"list": []byte(version + "\n"), version + ".info": []byte(info), version + ".mod": mod, version +
			".zip": packed.Bytes(),
	} {
		if err := os.WriteFile(filepath.Join(dir, file), data, 0o644); err != nil {
			return err
		}
	}
	return nil
}

// pack writes the files as a zip, with prefix before each name.
func pack(to io.Writer, root, prefix string, files map[string]string) error {
	z := zip.NewWriter(to)
	for name, from := range files {
		data, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(from)))
		if err != nil {
			return err
		}
		entry, err := z.Create(prefix + name)
		if err != nil {
			return err
		}
		if _, err := entry.Write(data); err != nil {
			return err
		}
	}
	return z.Close()
}
