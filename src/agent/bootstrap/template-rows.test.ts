/** Rows of spec/agent.md §4.2: templates of a bootstrap. */
import { describe, expect, test } from 'vitest';
import { bootstrapOf } from '../../../test/fixtures/configured-bootstraps.ts';
import { errorWith } from '../../../test/fixtures/error-details.ts';

describe('§4.2 templates', () => {
  const made = (template: string, name = 't.json') =>
    bootstrapOf({ env: { ISTIO_BOOTSTRAP: `<folder>/${name}` }, files: { [name]: template } });

  test('§4.2 a template has the values of the bootstrap, as JSON or YAML', () => {
    const json =
      '{"node": {"id": "{{ .nodeID }}", "cluster": {{ .cluster | toJSON }}, "metadata": {{ .meta_json_str }}}, "p": {{ .config.ProxyAdminPort }}}';
    expect(made(json)).toMatchObject({
      node: { cluster: 'istio-proxy', metadata: { INSTANCE_IPS: '10.1.2.3' } },
      p: 15000,
    });
    expect(made('p: {{ .config.StatusPort }}\nh: "{{ .localhost }}"\n', 't.yaml.tmpl')).toEqual({
      p: 15020,
      h: '127.0.0.1',
    });
    // Without the cluster of access logs the node does not ask for them.
    expect(made(json)).not.toHaveProperty('node.metadata.STANDARD_METRICS');
    expect(made('{{ toJSON .bootstrap }}')).toEqual(bootstrapOf());
  });

  test.each([
    ['{{ if }', { code: 'FIELD_FORMAT_INVALID', line: 1, column: 7 }, 'unexpected character "}"'],
    ['{"a": {{ .none }}}', { code: 'FIELD_FORMAT_INVALID', line: 1, column: 10 }, 'unknown field "none"'],
    ['{"a": {{ .zone }}}', { code: 'FIELD_FORMAT_INVALID' }, 'output is not JSON'],
    ['[]', { code: 'FIELD_TYPE_INVALID', expected: 'an object as output', got: 'a list' }, ''],
  ])('§4.2 reports an error of a template: %s', (template, fields, reason) => {
    expect(() => made(template)).toThrow(errorWith({ ...fields, path: expect.stringMatching(/t\.json$/) }));
    expect(() => made(template)).toThrow(reason);
  });
});
