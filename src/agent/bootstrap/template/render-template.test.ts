import { describe, expect, test } from 'vitest';
import { renderTemplate } from './render-template.ts';
import { TemplateMistake } from './template-syntax.ts';

const values = { a: 'x', list: ['p', 'q'], map: { z: 1, b: 2 }, config: { ProxyAdminPort: 15000 }, no: '', zero: 0 };
const rendered = (template: string): string => renderTemplate(template, values);

describe('§4.2 a template of a bootstrap', () => {
  test.each([
    ['text without actions', '{"a": 1}', '{"a": 1}'],
    [
      'a value, a field within, one that is not there',
      '{{ .a }}{{.config.ProxyAdminPort}}[{{ .none.deep }}]',
      'x15000[]',
    ],
    ['spaces are trimmed where a dash stands', 'a \n {{- .a -}} \n b', 'axb'],
    ['a comment', 'a{{/* {{ no }} */}}b', 'ab'],
    ['if, else if, else', '{{ if .no }}1{{ else if eq .a "x" }}2{{ else }}3{{ end }}', '2'],
    ['an empty list and 0 are false', '{{ if or .zero .no }}1{{ else }}2{{ end }}', '2'],
    ['range with index and element', '{{ range $i, $v := .list }}{{ if $i }},{{ end }}{{ $v }}{{ end }}', 'p,q'],
    ['range over a map in the order of its keys', '{{ range $k, $v := .map }}{{ $k }}{{ $v }}{{ end }}', 'b2z1'],
    ['range over nothing', '{{ range .none }}1{{ else }}2{{ end }}', '2'],
    ['with, and $ for the whole', '{{ with .config }}{{ .ProxyAdminPort }}{{ $.a }}{{ end }}', '15000x'],
    ['variables are set where they were declared', '{{ $v := 1 }}{{ if true }}{{ $v = 2 }}{{ end }}{{ $v }}', '2'],
    ['pipelines and parentheses', '{{ .list | toJSON }}{{ (index .list 1) | printf "%s-%q" "a" }}', '["p","q"]a-"q"'],
    ['texts within JSON', `"{{ js "a\\"b\\\\.<c'" }}"`, String.raw`"a\"b\\.\u003Cc\u0027"`],
    [
      'what Go has by itself',
      '{{ html "<" }}{{ urlquery "a/b" }}{{ slice .a 0 1 }}{{ println 1 2 }}',
      '&#60;a%2Fbx1 2\n',
    ],
    ['texts with braces', '{{ print "}}" `{{` }}', '}}{{'],
  ])('%s', (_, template, expected) => {
    expect(rendered(template)).toBe(expected);
  });

  test.each([
    ['{{ .a', 1, /not closed/],
    ['\n{{ if .a }}', 2, /a block is not closed/],
    ['a\n\n{{ end }}', 3, /\{\{ end \}\} has no place here/],
    ['{{ nothing .a }}', 1, /there is no function nothing/],
    ['{{ constructor }}', 1, /there is no function constructor/],
    ['{{ .a | .b }}', 1, /must be a function/],
    ['{{ $v }}', 1, /\$v is not declared/],
    ['{{ ! }}', 1, /cannot be read/],
    [`${'{{ if .a }}'.repeat(200)}`, 1, /blocks in more than 100 others/],
    [`{{ ${'('.repeat(5000)} }}`, 1, /parentheses in more than 100/],
    [`{{ range .list }}{{ $.long }}${'x'.repeat(3_000_000)}{{ end }}`, 1, /characters come of it/],
  ])('mistakes are told with their line: %.30s', (template, line, message) => {
    try {
      rendered(template);
    } catch (error) {
      expect(error).toBeInstanceOf(TemplateMistake);
      expect((error as TemplateMistake).line).toBe(line);
      expect((error as TemplateMistake).message).toMatch(message);
      return;
    }
    throw new Error('nothing was told');
  });
});
