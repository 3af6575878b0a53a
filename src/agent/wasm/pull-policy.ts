/** When a module is fetched again although it is cached (`imagePullPolicy`). */
import type { RemoteCode } from './extension-config.ts';
import { isImageUrl, parseImageUrl } from './image/image-reference.ts';

/**
 * As in Kubernetes, the default is `Always` for images with the tag `latest`, or without a tag. A checksum, or a digest in the URL, needs no
 * fetch.
 *
 * @returns version of the plugin if each version fetches its module; empty if a cached module is current
 */
export function fetchedVersionOf({
  extension,
  url,
  sha256,
  pullPolicy,
  resourceVersion,
}: Pick<RemoteCode, 'extension' | 'url' | 'sha256' | 'pullPolicy' | 'resourceVersion'>): string {
  if (sha256 !== '' || (pullPolicy ?? defaultPolicy(url)) === 'IfNotPresent') return '';
  return `${extension} ${resourceVersion}`;
}

function defaultPolicy(url: string): 'IfNotPresent' | 'Always' {
  if (!isImageUrl(url)) return 'IfNotPresent';
  try {
    return parseImageUrl(url).reference === 'latest' ? 'Always' : 'IfNotPresent';
  } catch {
    // The fetch reports what is wrong with the URL.
    return 'IfNotPresent';
  }
}
