#!/bin/sh
# Builds a substitute for the Dockerfile's base image where no registry is reachable: this Debian's essential
# packages, apt, and Node.js with npm. Lists the packages as installed, so that apt-get can add others.
# Usage: base-image.sh IMAGE BUILDAH…
set -eu
image=$1
shift
container=$("$@" from scratch)
root=$("$@" mount "$container")

essential=$(dpkg-query --show --showformat '${Essential} ${Package}\n' | awk '$1 == "yes" { print $2 }')
# Adds mawk, because base-files needs an awk, a dependency that apt-cache does not follow.
packages=$(apt-cache depends --recurse --installed --no-recommends --no-suggests --no-conflicts --no-breaks --no-replaces \
  --no-enhances $essential mawk apt ca-certificates debian-archive-keyring libstdc++6 | grep '^[a-z0-9]')
packages=$(dpkg-query --show --showformat '${db:Status-Abbrev} ${Package}\n' $packages 2>/dev/null | awk '$1 == "ii" { print $2 }' | sort -u)

cd "$root"
mkdir -p dev proc sys root tmp usr/bin usr/lib usr/lib64 usr/sbin usr/local/bin usr/local/lib/node_modules var/lib/dpkg/info var/lib/dpkg/updates
chmod 1777 tmp
for folder in bin lib lib64 sbin; do ln -s "usr/$folder" "$folder"; done
dpkg -L $packages | sort -u | while read -r file; do if [ -e "$file" ] || [ -L "$file" ]; then echo "$file"; fi; done |
  tar --create --directory / --no-recursion --files-from - 2>/dev/null | tar --extract --keep-directory-symlink
tar --create --directory / etc/alternatives etc/passwd etc/group etc/ssl/certs etc/ld.so.cache usr/share/keyrings | tar --extract

dpkg-query --status $packages >var/lib/dpkg/status
for package in $packages; do
  for file in /var/lib/dpkg/info/"$package".* /var/lib/dpkg/info/"$package":*; do
    if [ -e "$file" ]; then cp "$file" var/lib/dpkg/info/; fi
  done
done
rm -rf etc/apt/sources.list etc/apt/sources.list.d/*
. /etc/os-release
echo "deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] http://deb.debian.org/debian $VERSION_CODENAME main" >etc/apt/sources.list

cp "$(readlink -f "$(command -v node)")" usr/local/bin/node
cp -r "$(dirname "$(readlink -f "$(command -v npm)")")/.." usr/local/lib/node_modules/npm
ln -s ../lib/node_modules/npm/bin/npm-cli.js usr/local/bin/npm

cd /
# Uses this machine's certificate authorities.
"$@" config --env PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin \
  --env NODE_EXTRA_CA_CERTS=/etc/ssl/certs/ca-certificates.crt "$container"
"$@" commit --quiet --rm "$container" "$image"
