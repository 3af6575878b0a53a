/** Bootstrap templates, one test per requirement (test/spec-rows/agent-rows.ts). */
import { describe, expect, test } from 'vitest';
import { bootstrapOf } from '../../../test/fixtures/configured-bootstraps.ts';
import { errorWith } from '../../../test/fixtures/error-details.ts';

describe('bootstrap template (agent §4.2)', () => {
  const render = (template: string, name = 't.json') =>
    bootstrapOf({ env: { ISTIO_BOOTSTRAP: `<folder>/${name}` }, files: { [name]: template } });

  test('renders values of the bootstrap as JSON or YAML', () => {
    const json =
      '{"node": {"id": "{{ .nodeID }}", "cluster": {{ .cluster | toJSON }}, "metadata": {{ .meta_json_str }}}, "p": {{ .config.ProxyAdminPort }}}';
    expect(render(json)).toMatchObject({
      node: { cluster: 'istio-proxy', metadata: { INSTANCE_IPS: '10.1.2.3' } },
      p: 15000,
    });
    expect(render('p: {{ .config.StatusPort }}\nh: "{{ .localhost }}"\n', 't.yaml.tmpl')).toEqual({
      p: 15020,
      h: '127.0.0.1',
    });
    // Without the access log cluster, the node does not request logs.
    expect(render(json)).not.toHaveProperty('node.metadata.STANDARD_METRICS');
    expect(render('{{ toJSON .bootstrap }}')).toEqual(bootstrapOf());
  });

  test.each([
    ['{{ if }', { code: 'FIELD_FORMAT_INVALID', line: 1, column: 7 }, 'unexpected character "}"'],
    ['{"a": {{ .none }}}', { code: 'FIELD_FORMAT_INVALID', line: 1, column: 10 }, 'unknown field "none"'],
    ['{"a": {{ .zone }}}', { code: 'FIELD_FORMAT_INVALID' }, 'output is not JSON'],
    ['[]', { code: 'FIELD_TYPE_INVALID', expected: 'an object as output', got: 'a list' }, ''],
  ])('reports the position of an error: %s (agent §4.2)', (template, fields, reason) => {
    expect(() => render(template)).toThrow(errorWith({ ...fields, path: expect.stringMatching(/t\.json$/) }));
    expect(() => render(template)).toThrow(reason);
  });
});
