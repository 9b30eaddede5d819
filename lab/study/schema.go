package study

import (
	"bytes"
	"encoding/json"
	"fmt"
)

// schema is as much of JSON Schema as study files need.
type schema struct {
	Schema      string `json:"$schema,omitzero"`
	Title       string `json:"title,omitzero"`
	Description string `json:"description,omitzero"`

	Type      any      `json:"type,omitzero"` // a name or several
	Enum      []string `json:"enum,omitzero"`
	Const     string   `json:"const,omitzero"`
	Pattern   string   `json:"pattern,omitzero"`
	MinLength int      `json:"minLength,omitzero"`
	Minimum   *float64 `json:"minimum,omitzero"`
	Maximum   *float64 `json:"maximum,omitzero"`

	Items    *schema `json:"items,omitzero"`
	MinItems int     `json:"minItems,omitzero"`

	Properties           map[string]schema `json:"properties,omitzero"`
	PropertyNames        *schema           `json:"propertyNames,omitzero"`
	AdditionalProperties any               `json:"additionalProperties,omitzero"` // a pointer to false or to a schema
	Required             []string          `json:"required,omitzero"`

	AllOf []schema `json:"allOf,omitzero"`
	OneOf []schema `json:"oneOf,omitzero"`
	If    *schema  `json:"if,omitzero"`
	Then  *schema  `json:"then,omitzero"`
	Else  *schema  `json:"else,omitzero"`
	Not   *schema  `json:"not,omitzero"`
}

// requires is the rule that all these keys are there.
func requires(keys ...string) schema { return schema{Required: keys} }

// exactlyOne is the rule that one of these keys is there and the others not.
func exactlyOne(keys ...string) schema {
	var s schema
	for _, k := range keys {
		s.OneOf = append(s.OneOf, requires(k))
	}
	return s
}

// having is the condition that a key has this value.
func having(key, value string) *schema {
	return &schema{Properties: map[string]schema{key: {Const: value}}, Required: []string{key}}
}

// without is the rule that none of these keys is there.
func without(keys ...string) schema {
	var s schema
	for _, k := range keys {
		s.AllOf = append(s.AllOf, schema{Not: new(requires(k))})
	}
	return s
}

// Schema returns the JSON Schema (draft 2020-12) of study files, for editors.
// It is made from the table that Parse reads by; what refers from one part of
// a file to another, such as a control that is no arm, only Parse finds.
func Schema() ([]byte, error) {
	s := studyShape().schema
	s.Schema = "https://json-schema.org/draft/2020-12/schema"
	s.Title = "tare study"
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	if err := enc.Encode(s); err != nil {
		return nil, fmt.Errorf("encoding the schema of study files: %w", err)
	}
	return b.Bytes(), nil
}
