/**
 * Variables of the VM that the agent needs to fetch a WasmPlugin's code. The agent removes them (Istio's agent and
 * control plane use the same names). Credentials are only sent to proxies whose verified namespace is that of the
 * plugin and its Secret, so a plugin of the root namespace does not give the mesh's credentials to each tenant.
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
  readonly secret: Config | undefined;
  readonly dependsOn: readonly ConfigKey[];
}

/**
 * For a plugin whose code the agent fetches. The secret is empty if the proxy may receive none, which the agent
 * reports.
 */
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

/** Changes with the plugin or an annotation, but not with its status. */
function versionOf({ spec, annotations }: Config<WasmPlugin>): string {
  const { verificationKey: _, ...used } = spec;
  return hash('sha256', JSON.stringify([used, annotations])).slice(0, 16);
}
