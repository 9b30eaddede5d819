package shape

import (
	"bytes"
	"encoding/json"
	"fmt"
)

// Schema is as much of JSON Schema (draft 2020-12) as the files need.
type Schema struct {
	Schema      string `json:"$schema,omitzero"`
	Ref         string `json:"$ref,omitzero"`
	Title       string `json:"title,omitzero"`
	Description string `json:"description,omitzero"`

	Type      any      `json:"type,omitzero"` // a name or several
	Enum      []string `json:"enum,omitzero"`
	Const     string   `json:"const,omitzero"`
	Pattern   string   `json:"pattern,omitzero"`
	MinLength int      `json:"minLength,omitzero"`
	Minimum   *float64 `json:"minimum,omitzero"`
	Maximum   *float64 `json:"maximum,omitzero"`

	Items    *Schema `json:"items,omitzero"`
	MinItems int     `json:"minItems,omitzero"`

	Properties           map[string]Schema `json:"properties,omitzero"`
	PropertyNames        *Schema           `json:"propertyNames,omitzero"`
	AdditionalProperties any               `json:"additionalProperties,omitzero"` // a pointer to false or to a Schema
	Required             []string          `json:"required,omitzero"`

	AllOf []Schema `json:"allOf,omitzero"`
	OneOf []Schema `json:"oneOf,omitzero"`
	If    *Schema  `json:"if,omitzero"`
	Then  *Schema  `json:"then,omitzero"`
	Else  *Schema  `json:"else,omitzero"`
	Not   *Schema  `json:"not,omitzero"`

	Defs map[string]Schema `json:"$defs,omitzero"`
}

// Requires is the rule that all these keys are there.
func Requires(keys ...string) Schema { return Schema{Required: keys} }

// ExactlyOne is the rule that one of these keys is there and the others not.
func ExactlyOne(keys ...string) Schema {
	var s Schema
	for _, k := range keys {
		s.OneOf = append(s.OneOf, Requires(k))
	}
	return s
}

// Having is the condition that a key has this value.
func Having(key, value string) *Schema {
	return &Schema{Properties: map[string]Schema{key: {Const: value}}, Required: []string{key}}
}

// Without is the rule that none of these keys is there.
func Without(keys ...string) Schema {
	s := Schema{Properties: map[string]Schema{}}
	for _, k := range keys {
		s.Properties[k] = Schema{Not: new(Schema)}
	}
	return s
}

// Encode writes the JSON Schema of a shape, for editors; what refers from one part of a
// file to another, only checks find. defs are the schemas that Named refers to.
func (s Of[V]) Encode(title string, defs map[string]Schema) ([]byte, error) {
	whole := s.schema
	whole.Defs = defs
	whole.Schema = "https://json-schema.org/draft/2020-12/schema"
	whole.Title = title
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	if err := enc.Encode(whole); err != nil {
		return nil, fmt.Errorf("encoding the schema of a %s: %w", title, err)
	}
	return b.Bytes(), nil
}
