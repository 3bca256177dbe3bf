package main

import (
	"strings"
	"testing"
)

func TestEditingKeepsWhatItDoesNotTouch(t *testing.T) {
	const body = `{"b":9007199254740993,"a":{"x":1.50,"y":[1,{"z":null}]},"u":"日本 \u20ac"}`
	for _, tt := range []struct {
		name, path, value string
		want              string
	}{
		{"a member", "b", "2", `{"b":2,"a":{"x":1.50,"y":[1,{"z":null}]},"u":"日本 €"}`},
		{"a nested member", "a.x", `"t"`, `{"b":9007199254740993,"a":{"x":"t","y":[1,{"z":null}]},"u":"日本 €"}`},
		{"an element", "a.y.0", "true", `{"b":9007199254740993,"a":{"x":1.50,"y":[true,{"z":null}]},"u":"日本 €"}`},
		{"a member of an element", "a.y.1.z", "{}", `{"b":9007199254740993,"a":{"x":1.50,"y":[1,{"z":{}}]},"u":"日本 €"}`},
		{"the element after the last", "a.y.2", "3", `{"b":9007199254740993,"a":{"x":1.50,"y":[1,{"z":null},3]},"u":"日本 €"}`},
		{"a member that is not there", "n.m", "1", `{"b":9007199254740993,"a":{"x":1.50,"y":[1,{"z":null}]},"u":"日本 €","n":{"m":1}}`},
		{"an object in place of a number", "b.c", "1", `{"b":{"c":1},"a":{"x":1.50,"y":[1,{"z":null}]},"u":"日本 €"}`},
		{"text that is no JSON", "b", "A-1", `{"b":"A-1","a":{"x":1.50,"y":[1,{"z":null}]},"u":"日本 €"}`},
		{"nothing", "b", "", `{"b":"","a":{"x":1.50,"y":[1,{"z":null}]},"u":"日本 €"}`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			n, err := parseJSON([]byte(body))
			if err != nil {
				t.Fatal(err)
			}
			if err := n.set(strings.Split(tt.path, "."), jsonOrText(tt.value)); err != nil {
				t.Fatal(err)
			}
			got, err := n.format()
			if err != nil {
				t.Fatal(err)
			}
			compact := strings.NewReplacer("\n", "", "  ", "", ": ", ":").Replace(string(got))
			if compact != tt.want {
				t.Errorf("got  %s\nwant %s", compact, tt.want)
			}
		})
	}
}

func TestAnElementFarBehindTheLastCannotBeSet(t *testing.T) {
	n, err := parseJSON([]byte(`[1]`))
	if err != nil {
		t.Fatal(err)
	}
	for _, part := range []string{"2", "-1", "x"} {
		if err := n.set([]string{part}, nullNode()); err == nil {
			t.Errorf("set %q: no error", part)
		}
	}
}

func TestOnlyStrictJSONIsEdited(t *testing.T) {
	for _, body := range []string{``, `{`, `{"a":1,"a":2}`, `{} {}`, `{"a":"` + "\xff" + `"}`, `nul`, `[1,]`} {
		if _, err := parseJSON([]byte(body)); err == nil {
			t.Errorf("parseJSON(%q): no error", body)
		}
	}
}
