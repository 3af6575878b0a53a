/** Reports VirtualService matches that never apply, because an earlier route matches all their requests. */
import { shadowedMatches } from '../../../model/kinds/virtual-service/shadowed-matches.ts';
import { type ConfigCheck, isWrittenConfig } from '../config-warning.ts';

export const checkShadowedRoutes: ConfigCheck = function* ({ configs }) {
  for (const config of configs.VirtualService) {
    yield undefined;
    if (!isWrittenConfig(config)) continue;
    for (const { path, message, shadowingPath } of shadowedMatches(config.spec)) {
      const shadowingLocation = { config, field: `spec.${shadowingPath}` };
      yield { code: 'MATCH_SHADOWED', config, field: `spec.${path}`, message, other: shadowingLocation };
    }
  }
};
