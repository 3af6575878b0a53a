/**
 * What the agent needs to fetch the code of a WasmPlugin, as variables of the VM, which the agent removes (Istio's agent and control plane use
 * the same names). Credentials are sent only to proxies that have shown to be of the namespace of the plugin and its Secret: a plugin of the
 * root namespace must not hand out the credentials of the mesh to each tenant.
 */
import { hash } from 'node:crypto';
import { type Config, type ConfigKey, configKeyOf } from '../../model/config/config.ts';
import type { WasmPlugin } from '../../model/kinds/extensions/wasm-plugin.ts';
import { pullSecretOf } from '../../model/kinds/kubernetes/pull-secret.ts';
import type { ProxyShape } from '../../model/proxy/proxy-shape.ts';
import type { PushContext } from '../../model/push-context/push-context.ts';

export type PullVariables = Readonly<Record<string, string>>;

export const pullSecretVariable = 'ISTIO_META_WASM_IMAGE_PULL_SECRET';
const policyVariable = 'ISTIO_META_WASM_IMAGE_PULL_POLICY';
const versionVariable = 'ISTIO_META_WASM_PLUGIN_RESOURCE_VERSION';

interface Pull {
  readonly variables: PullVariables;
  readonly mayHaveSecret: boolean;
  /** Secret that the variables depend on. */
  readonly secret: Config | undefined;
  readonly dependsOn: readonly ConfigKey[];
}

/** Of a plugin whose code the agent fetches. The secret is empty if there is none that the proxy may have: the agent reports it. */
export function pullOf(plugin: Config<WasmPlugin>, shape: ProxyShape, { credentials }: PushContext): Pull {
  const { namespace, spec } = plugin;
  const { imagePullSecret: name, imagePullPolicy: policy = 'UNSPECIFIED_POLICY' } = spec;
  const mayHaveSecret = shape.pullSecrets === true && namespace === shape.configNamespace;
  const secret = name && mayHaveSecret ? credentials.secret(namespace, name) : undefined;
  return {
    variables: {
      [policyVariable]: policy,
      [versionVariable]: versionOf(plugin),
      ...(name && { [pullSecretVariable]: (secret && pullSecretOf(secret.spec)) ?? '' }),
    },
    mayHaveSecret,
    secret,
    dependsOn: name && mayHaveSecret ? [{ ...configKeyOf(plugin), kind: 'Secret', name }] : [],
  };
}

/** Changes with the plugin, also with an annotation, and not with its status. */
function versionOf({ spec, annotations }: Config<WasmPlugin>): string {
  const { verificationKey: _, ...used } = spec;
  return hash('sha256', JSON.stringify([used, annotations])).slice(0, 16);
}
