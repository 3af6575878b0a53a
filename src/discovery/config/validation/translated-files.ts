import type { Config } from '../../../model/config/config.ts';
import { type ConfigSet, configSetOf } from '../../../model/config/config-set.ts';
import type { MeshConfig } from '../../../model/mesh/mesh-config.ts';
import { type GatewayApiTranslation, translateGatewayApi } from '../../../model/translation/gateway-api/translate.ts';
import { translateIngresses } from '../../../model/translation/ingress.ts';

export interface TranslatedFiles {
  readonly configs: readonly Config[];
  readonly writtenConfigs: ConfigSet;
  readonly mesh: MeshConfig;
  readonly domain: string;
  readonly gatewayApi: GatewayApiTranslation;
  readonly generatedConfigs: ReadonlyMap<string, Config>;
}

export function translateFiles(configs: readonly Config[], mesh: MeshConfig, domain: string): TranslatedFiles {
  const writtenSet = configSetOf(configs);
  const gatewayApi = translateGatewayApi(writtenSet, domain);
  const generatedConfigs = new Map([...translateIngresses(writtenSet, mesh, { domain }), ...gatewayApi.objects]);
  return { configs, writtenConfigs: writtenSet, mesh, domain, gatewayApi, generatedConfigs };
}
