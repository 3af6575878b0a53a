/** A bootstrap of somebody's own template (spec/agent.md §4.2): the same values, another shape. */
import { proxyConfigToJson } from '../../../model/mesh/proxy-config.ts';
import { parseYamlDocument } from '../../../model/yaml/yaml-document.ts';
import { messageOf } from '../../../runtime/errors.ts';
import { isObject } from '../../../runtime/json-object.ts';
import type { OptionErrors } from '../../../runtime/option-errors.ts';
import type { BootstrapTemplate } from '../../options/bootstrap-template.ts';
import { type BootstrapFacts, lookupFamily } from '../bootstrap.ts';
import { renderTemplate } from './render-template.ts';
import { TemplateMistake } from './template-syntax.ts';

/** @returns an empty object where the template has mistakes, which go to `errors` with their lines */
export function templateBootstrap(
  { path, text }: BootstrapTemplate,
  facts: BootstrapFacts,
  builtIn: object,
  errors: OptionErrors,
): object {
  let rendered: string;
  try {
    rendered = renderTemplate(text, valuesOf(facts, builtIn));
  } catch (error) {
    if (!(error instanceof TemplateMistake)) throw error;
    errors.config(`${path}, line ${error.line}: ${error.message}`);
    return {};
  }
  const read = readObject(rendered);
  if (typeof read !== 'string') return read;
  errors.config(`${path}: what comes of it ${read}`);
  return {};
}

/** JSON or YAML; a text says what is wrong. */
function readObject(text: string): object | string {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (error) {
    if (text.trimStart().startsWith('{')) return `is no JSON: ${messageOf(error)}`;
    const document = parseYamlDocument({ text, line: 1 });
    const [broken] = document.errors;
    if (broken !== undefined) return `is no YAML: line ${broken.line}: ${broken.message}`;
    value = document.value;
  }
  return isObject(value) ? value : 'is no object';
}

/** Values by the names that templates of Istio's bootstrap use; `bootstrap` is what would be written without a template. */
function valuesOf(facts: BootstrapFacts, builtIn: object): Record<string, unknown> {
  const { node, config, local } = facts;
  const { locality = {} } = node;
  return {
    bootstrap: builtIn,
    nodeID: node.id,
    nodeType: node.id.split('~', 1)[0],
    cluster: node.cluster,
    region: locality.region ?? '',
    zone: locality.zone ?? '',
    sub_zone: locality.sub_zone ?? '',
    meta_json_str: JSON.stringify(node.metadata),
    metadata: node.metadata,
    // Fields of a message in Go begin with a capital.
    config: Object.fromEntries(
      Object.entries(proxyConfigToJson(config)).flatMap(([field, value]) => [
        [field, value],
        [field.charAt(0).toUpperCase() + field.slice(1), value],
      ]),
    ),
    pilot_SAN: node.metadata.PILOT_SAN,
    localhost: local.localhost,
    wildcard: local.wildcard,
    dns_lookup_family: lookupFamily(facts),
    envoy_status_port: facts.envoyStatusPort,
    envoy_prometheus_port: facts.envoyPrometheusPort,
    sts_port: node.metadata.STS_PORT,
    outlier_log_path: facts.outlierLogPath,
    xds_socket: facts.xdsSocket,
    sds_socket: facts.secretSocket,
    xds_type: facts.delta ? 'DELTA_GRPC' : 'GRPC',
    env: { HOST_IP: facts.hostIp },
  };
}
