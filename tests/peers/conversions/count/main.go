// Command count counts the lines of Go that convert a kind: those of the methods ConvertTo and
// ConvertFrom of its versions, and of all functions of the same packages that these methods call,
// directly or not. It reads {name: {"folders": [...], "type": ...}} and writes {name: {...}}.
//
// Blank lines and lines with only a comment do not count. Lines of generated files are counted
// apart. Calls are followed by name: a function by its name in all folders, a method by its name in
// the same file.
package main

import (
	"encoding/json"
	"go/ast"
	"go/parser"
	"go/token"
	"log"
	"os"
	"path/filepath"
	"strings"
)

type question struct {
	Folders []string `json:"folders"`
	Type    string   `json:"type"`
}

type lines struct {
	Written   int `json:"written"`
	Generated int `json:"generated"`
}

type function struct {
	declared  *ast.FuncDecl
	receiver  string
	file      string
	generated bool
	length    int
}

func main() {
	questions := map[string]question{}
	if err := json.NewDecoder(os.Stdin).Decode(&questions); err != nil {
		log.Fatal(err)
	}
	answers := map[string]lines{}
	for name, each := range questions {
		answers[name] = each.counted()
	}
	if err := json.NewEncoder(os.Stdout).Encode(answers); err != nil {
		log.Fatal(err)
	}
}

func (q question) counted() lines {
	known := read(q.Folders)
	seen := map[*function]bool{}
	var open []*function
	for _, each := range known {
		name := each.declared.Name.Name
		if each.receiver == q.Type && (name == "ConvertTo" || name == "ConvertFrom") {
			open = append(open, each)
		}
	}
	var sum lines
	for len(open) > 0 {
		next := open[0]
		open = open[1:]
		if seen[next] {
			continue
		}
		seen[next] = true
		if next.generated {
			sum.Generated += next.length
		} else {
			sum.Written += next.length
		}
		open = append(open, next.called(known)...)
	}
	return sum
}

// called returns the functions whose names are those of the calls in a function.
func (f *function) called(known []*function) []*function {
	plain, methods := map[string]bool{}, map[string]bool{}
	ast.Inspect(f.declared, func(node ast.Node) bool {
		switch found := node.(type) {
		case *ast.Ident:
			plain[found.Name] = true
		case *ast.SelectorExpr:
			methods[found.Sel.Name] = true
		}
		return true
	})
	var result []*function
	for _, each := range known {
		name := each.declared.Name.Name
		if each.receiver == "" && (plain[name] || methods[name]) ||
			each.receiver != "" && methods[name] && each.file == f.file && name != "ConvertTo" && name != "ConvertFrom" {
			result = append(result, each)
		}
	}
	return result
}

func read(folders []string) []*function {
	var known []*function
	for _, folder := range folders {
		paths, err := filepath.Glob(filepath.Join(folder, "*.go"))
		if err != nil || len(paths) == 0 {
			log.Fatalf("no Go files in %s", folder)
		}
		for _, path := range paths {
			if !strings.HasSuffix(path, "_test.go") {
				known = append(known, functions(path)...)
			}
		}
	}
	return known
}

func functions(path string) []*function {
	text, err := os.ReadFile(path)
	if err != nil {
		log.Fatal(err)
	}
	set := token.NewFileSet()
	file, err := parser.ParseFile(set, path, text, parser.ParseComments)
	if err != nil {
		log.Fatal(err)
	}
	rows := strings.Split(string(text), "\n")
	var found []*function
	for _, each := range file.Decls {
		declared, is := each.(*ast.FuncDecl)
		if !is || declared.Body == nil {
			continue
		}
		first, last := set.Position(declared.Pos()).Line, set.Position(declared.End()).Line
		found = append(found, &function{
			declared, receiver(declared), path, ast.IsGenerated(file), length(rows[first-1 : last]),
		})
	}
	return found
}

func receiver(declared *ast.FuncDecl) string {
	if declared.Recv == nil {
		return ""
	}
	kind := declared.Recv.List[0].Type
	if pointer, is := kind.(*ast.StarExpr); is {
		kind = pointer.X
	}
	if name, is := kind.(*ast.Ident); is {
		return name.Name
	}
	return "?"
}

func length(rows []string) int {
	count := 0
	for _, row := range rows {
		if row = strings.TrimSpace(row); row != "" && !strings.HasPrefix(row, "//") {
			count++
		}
	}
	return count
}
