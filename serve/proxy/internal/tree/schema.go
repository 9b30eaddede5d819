package tree

import (
	"encoding/json"
	"fmt"
	"strings"
)

// schema is as much of JSON Schema (draft 2020-12) as files need.
type schema struct {
	Schema               string             `json:"$schema,omitzero"`
	Ref                  string             `json:"$ref,omitzero"`
	Title                string             `json:"title,omitzero"`
	Description          string             `json:"description,omitzero"`
	Type                 string             `json:"type,omitzero"`
	Enum                 []string           `json:"enum,omitzero"`
	Pattern              string             `json:"pattern,omitzero"`
	Minimum              *int               `json:"minimum,omitzero"`
	Maximum              *int               `json:"maximum,omitzero"`
	Items                *schema            `json:"items,omitzero"`
	Properties           map[string]*schema `json:"properties,omitzero"`
	AdditionalProperties any                `json:"additionalProperties,omitzero"` // a schema, or a pointer to false
	Required             []string           `json:"required,omitzero"`
	MaxProperties        int                `json:"maxProperties,omitzero"`
	MinProperties        int                `json:"minProperties,omitzero"`
}

// Describe returns a value that stands for all there may be: whatever reads it describes
// it. Schema then returns the description.
func Describe() Value { return Value{r: &reader{}, schema: &schema{}} }

// Describes reports whether reading the value describes it.
func (v Value) Describes() bool { return v.schema != nil }

// DescribesAs has the value be described as the one that a pointer says, and reports whether
// reading it describes it.
func (v Value) DescribesAs(pointer string) bool {
	if v.schema != nil {
		v.schema.Ref = pointer
	}
	return v.schema != nil
}

// DescribeOne has an object that is described have one key alone.
func (v Value) DescribeOne() { v.schema.MinProperties, v.schema.MaxProperties = 1, 1 }

// Schema returns the JSON Schema of what was read, by its title.
func (v Value) Schema(title string) []byte {
	v.schema.Schema, v.schema.Title = "https://json-schema.org/draft/2020-12/schema", title
	text, err := json.MarshalIndent(v.schema, "", "  ")
	if err != nil {
		panic(fmt.Sprintf("tree: encoding a schema: %v", err)) // it has nothing that cannot be encoded
	}
	return append(text, '\n')
}

// object describes an object with these keys, and returns what its values are described by.
func (s *schema) object(r *reader, keys []string) map[string]Value {
	*s = schema{Type: "object", Properties: map[string]*schema{}, AdditionalProperties: new(bool)}
	all := map[string]Value{}
	for _, k := range keys {
		name, required := strings.CutSuffix(k, "!")
		if required {
			s.Required = append(s.Required, name)
		}
		s.Properties[name] = &schema{}
		all[name] = Value{r: r, schema: s.Properties[name]}
	}
	return all
}

// members describes an object whose keys are the writer's own.
func (s *schema) members(r *reader, what string) Value {
	below := &schema{}
	*s = schema{Type: "object", Description: what, AdditionalProperties: below}
	return Value{r: r, schema: below}
}

// list describes a list.
func (s *schema) list(r *reader) Value {
	*s = schema{Type: "array", Items: &schema{}}
	return Value{r: r, schema: s.Items}
}

// matches adds what a text looks like.
func (s *schema) matches(pattern string) {
	if s != nil {
		s.Pattern = pattern
	}
}
