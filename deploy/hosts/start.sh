#!/usr/bin/env bash
# A Dask cluster on plain hosts that share a folder, over TLS: only those who can read the keys in FOLDER get in.
#
#   start.sh keys FOLDER                       once: keys of a certificate authority of its own, for their owner only
#   start.sh scheduler FOLDER                  on one host; it says its address
#   start.sh worker FOLDER [PROCESSES]         on every host that works, by ssh or pdsh; ended by Ctrl-C or SIGTERM
#   . FOLDER/environment                       where a fit is started: the keys for daskspectral ... --scheduler tls://...
#
# Further arguments go to `dask scheduler` and `dask worker`: --interface ib0, --port 8786, --memory-limit 16GB.
set -euo pipefail

usage() { sed -n '2,9s/^# \{0,1\}//p' "$0" >&2; exit 2; }
[ $# -ge 2 ] || usage
what=$1 folder=$(realpath -m "$2")
shift 2

case $what in
    keys)
        umask 077
        mkdir -p "$folder"
        [ ! -e "$folder/environment" ] || { echo "there are keys in $folder already" >&2; exit 1; }
        python - "$folder" <<'PYTHON'
import sys
from pathlib import Path

from distributed.security import Security

folder, found = Path(sys.argv[1]), Security.temporary()
(folder / "ca.pem").write_text(found.tls_ca_file)
(folder / "cert.pem").write_text(found.tls_client_cert)
(folder / "key.pem").write_text(found.tls_client_key)
PYTHON
        {
            echo "export DASK_DISTRIBUTED__COMM__REQUIRE_ENCRYPTION=true"
            echo "export DASK_DISTRIBUTED__COMM__TLS__CA_FILE='$folder/ca.pem'"
            for role in CLIENT SCHEDULER WORKER; do
                echo "export DASK_DISTRIBUTED__COMM__TLS__${role}__CERT='$folder/cert.pem'"
                echo "export DASK_DISTRIBUTED__COMM__TLS__${role}__KEY='$folder/key.pem'"
            done
        } >"$folder/environment"
        ;;
    scheduler)
        . "$folder/environment"
        exec python -m distributed.cli.dask_scheduler --protocol tls --scheduler-file "$folder/scheduler.json" "$@"
        ;;
    worker)
        . "$folder/environment"
        processes=1
        case ${1:-} in [1-9]*) processes=$1 && shift ;; esac
        cores=$(nproc)
        # one BLAS thread for each thread of a worker: more take the cores from each other
        export OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 MKL_NUM_THREADS=1
        exec python -m distributed.cli.dask_worker --protocol tls --scheduler-file "$folder/scheduler.json" \
            --nworkers "$processes" --nthreads "$((cores < processes ? 1 : cores / processes))" "$@"
        ;;
    *) usage ;;
esac
