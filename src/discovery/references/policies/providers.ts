/** Reports extension providers that AuthorizationPolicies and Telemetries use but that the mesh configuration does not contain. */
import type { Config } from '../../../model/config/config.ts';
import type { Telemetry } from '../../../model/kinds/extensions/telemetry.ts';
import type { AuthorizationPolicy } from '../../../model/kinds/policies/authorization-policy.ts';
import { type ConfigCheck, type ConfigWarning, isWrittenConfig } from '../config-warning.ts';

export interface NamedProvider {
  readonly config: Config;
  readonly name: string;
  readonly field: string;
  readonly effect: string;
}

export const checkProviders: ConfigCheck = function* ({ context, configs, knownObjects }) {
  const names = new Set(context.mesh.extensionProviders.map(({ name }) => name));
  const list = names.size === 0 ? 'it has none' : `it has ${[...names].join(', ')}`;
  const warningOf = ({ config, name, field, effect }: NamedProvider): ConfigWarning | undefined => {
    if (names.has(name) || !knownObjects.isComplete('ExtensionProvider')) return undefined;
    if (context.mesh.invalidProviders?.includes(name)) {
      // `validate` reports the invalid provider itself.
      if (knownObjects.areFromFiles) return undefined;
      const invalidText = `the extension provider ${name} of the mesh configuration is invalid and ignored, so ${effect}: correct its settings`;
      return { code: 'PROVIDER_NOT_FOUND', config, field, message: invalidText };
    }
    const message = `the mesh configuration has no extension provider ${name} (${list}), so ${effect}: add it to extensionProviders, or correct the name`;
    return { code: 'PROVIDER_NOT_FOUND', config, field, message };
  };
  for (const config of configs.AuthorizationPolicy) {
    yield undefined;
    for (const provider of isWrittenConfig(config) ? namedProviders(config as Config<never>) : [])
      yield warningOf(provider);
  }
  for (const config of configs.Telemetry) {
    yield undefined;
    for (const provider of isWrittenConfig(config) ? namedProviders(config as Config<never>) : [])
      yield warningOf(provider);
  }
};

export function namedProviders(config: Config<never>): Iterable<NamedProvider> {
  return config.kind === 'Telemetry' ? providersOfTelemetry(config) : providersOfPolicy(config);
}

function* providersOfPolicy(config: Config<AuthorizationPolicy>): Generator<NamedProvider> {
  const { provider } = config.spec;
  if (provider === undefined) return;
  yield {
    config,
    name: provider,
    field: 'spec.provider.name',
    effect: 'all requests that the policy matches are denied',
  };
}

function* providersOfTelemetry(config: Config<Telemetry>): Generator<NamedProvider> {
  for (const list of ['tracing', 'metrics', 'accessLogging'] as const) {
    for (const [index, { providers = [] }] of (config.spec[list] ?? []).entries()) {
      for (const [providerIndex, name] of providers.entries()) {
        const field = `spec.${list}[${index}].providers[${providerIndex}].name`;
        yield { config, name, field, effect: 'nothing is sent to it' };
      }
    }
  }
}
