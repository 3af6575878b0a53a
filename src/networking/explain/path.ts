/** Normalizes paths before routing (HttpConnectionManager: normalize_path, merge_slashes, …). */
import {
  HttpConnectionManager_PathWithEscapedSlashesAction as EscapedSlashes,
  type HttpConnectionManager,
} from '../../gen/envoy/extensions/filters/network/http_connection_manager/v3/http_connection_manager_pb.ts';

type Settings = Pick<HttpConnectionManager, 'normalizePath' | 'mergeSlashes' | 'pathWithEscapedSlashesAction'>;

export function normalizedPath(fullPath: string, settings: Settings): string | undefined {
  const pathEnd = fullPath.search(/[?#]/);
  const [path, suffix] = pathEnd === -1 ? [fullPath, ''] : [fullPath.slice(0, pathEnd), fullPath.slice(pathEnd)];
  if (!path.startsWith('/')) return fullPath;
  const unescapedPath = unescapeSlashes(path, settings);
  if (unescapedPath === undefined) return undefined;
  const normalPath = settings.normalizePath ? resolveDots(unescapedPath) : unescapedPath;
  const mergedPath = settings.mergeSlashes ? normalPath.replaceAll(/\/{2,}/g, '/') : normalPath;
  return mergedPath + suffix;
}

function unescapeSlashes(path: string, { pathWithEscapedSlashesAction: action }: Settings): string | undefined {
  const escapedSlash = /%2f|%5c/i;
  if (!escapedSlash.test(path)) return path;
  if (action === EscapedSlashes.REJECT_REQUEST) return undefined;
  const unescapes = action === EscapedSlashes.UNESCAPE_AND_FORWARD || action === EscapedSlashes.UNESCAPE_AND_REDIRECT;
  return unescapes ? path.replaceAll(/%2f/gi, '/').replaceAll(/%5c/gi, '\\') : path;
}

/** Normalizes as for web URLs (RFC 3986 §6.2.2): dot segments, percent-encoded unreserved characters, backslashes. */
function resolveDots(path: string): string {
  const decodedPath = path.replaceAll(/%([0-9a-f]{2})/gi, (escape, hex: string) => {
    const character = String.fromCharCode(Number.parseInt(hex, 16));
    return /[\w.~-]/.test(character) ? character : escape;
  });
  const segments = decodedPath.replaceAll('\\', '/').split('/');
  const keptSegments: string[] = [];
  for (const [index, segment] of segments.entries()) {
    const isLastSegment = index === segments.length - 1;
    if (segment === '..' && keptSegments.length > 1) keptSegments.pop();
    if (segment !== '.' && segment !== '..') keptSegments.push(segment);
    else if (isLastSegment) keptSegments.push('');
  }
  return keptSegments.join('/') || '/';
}
