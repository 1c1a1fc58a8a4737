//! The kind of host (bare metal, virtual machine, container), which shows whose /proc and /sys are read.

use crate::collector::{Collector, Cost, Run, fact};
use crate::context::{Context, Depth};
use crate::parse::field;
use crate::readings::Readings;
use crate::source::{Missing, Read, Source};
use mydyno_linux::hypervisor;

/// Scope of the host's facts.
pub static COLLECTOR: Collector = Collector {
    name: "virtualisation",
    cost: Cost { host_ms: 2, server_ms: 0 },
    deadline_ms: 1000,
    depth: Depth::Record,
    facts: &[
        fact("host.scope", "", "bare, vm or container: whose /proc and /sys the facts are from"),
        fact(
            "host.runs_server",
            "",
            "whether the server runs on this host: otherwise no fact of the host is about it",
        ),
        fact("host.hypervisor", "", "hypervisor in the words of systemd-detect-virt; none on bare metal"),
        fact("host.container", "", "kind of container that mydyno runs in; none outside of one"),
        fact("host.machine.vendor", "", "maker of the machine, by its firmware"),
        fact("host.machine.product", "", "machine, by its firmware; cloud instances tell their type here"),
    ],
    run: Run::Host(run),
};

const DMI: &str = "/sys/class/dmi/id";

fn run(context: &Context, readings: &Readings) {
    let source = &context.source;
    let (hypervisor, seen_in) = hypervisor(source);
    let (container, shown_by) = container(source);
    let scope = match (container.as_deref(), &hypervisor) {
        (Ok("none"), Ok(kind)) if kind == "none" => Ok("bare".to_owned()),
        (Ok("none"), Ok(_)) => Ok("vm".to_owned()),
        (Ok("none"), Err(missing)) => Err(missing.clone()),
        (Ok(_), _) => Ok("container".to_owned()),
        (Err(missing), _) => Err((*missing).clone()),
    };
    readings.put("host.scope", format!("{shown_by}; {seen_in}"), scope);
    readings.put("host.runs_server", "/proc", context.server.as_ref().map(|_| true).map_err(Clone::clone));
    readings.put("host.hypervisor", seen_in, hypervisor);
    readings.put("host.container", shown_by, container);
    readings.read("host.machine.vendor", &format!("{DMI}/sys_vendor"), |p| source.read(p));
    readings.read("host.machine.product", &format!("{DMI}/product_name"), |p| source.read(p));
}

/// Names that firmware gives to virtual machines, in the order of systemd-detect-virt(1).
const FIRMWARE: [(&str, &str); 14] = [
    ("KVM", "kvm"),
    ("OpenStack", "kvm"),
    ("KubeVirt", "kvm"),
    ("Amazon EC2", "amazon"),
    ("QEMU", "qemu"),
    ("VMware", "vmware"),
    ("VMW", "vmware"),
    ("innotek GmbH", "oracle"),
    ("VirtualBox", "oracle"),
    ("Xen", "xen"),
    ("Bochs", "bochs"),
    ("Parallels", "parallels"),
    ("Google Compute Engine", "google"),
    ("Hyper-V", "microsoft"),
];

/// The hypervisor below and where it was seen.
fn hypervisor(source: &Source) -> (Read<String>, &'static str) {
    let firmware = ["product_name", "sys_vendor", "board_vendor", "bios_vendor", "product_version"]
        .iter()
        .filter_map(|file| source.read(&format!("{DMI}/{file}")).ok())
        .find_map(|text| FIRMWARE.iter().find(|(name, _)| text.starts_with(name)).map(|(_, kind)| *kind));
    // Amazon's bare-metal instances have the same vendor; there the processor shows no hypervisor.
    let virtual_cpu = virtual_cpu(source);
    match (firmware, &virtual_cpu) {
        (Some("amazon" | "google"), Ok(false)) => return (Ok("none".to_owned()), "/proc/cpuinfo"),
        (Some(kind), _) => {
            // QEMU names only the emulator; the processor's signature shows whether KVM runs it.
            let kind = match (kind, signature(source)) {
                ("qemu", Some(by_cpu)) => by_cpu,
                (kind, _) => kind.to_owned(),
            };
            return (Ok(kind), "/sys/class/dmi/id");
        }
        (None, _) => {}
    }
    if let Some(kind) = signature(source) {
        return (Ok(kind), "CPUID leaf 0x40000000");
    }
    if let Ok(kind) = source.read("/sys/hypervisor/type")
        && !kind.is_empty()
    {
        return (Ok(kind), "/sys/hypervisor/type");
    }
    if let Ok(text) = source.read("/proc/device-tree/hypervisor/compatible") {
        let kind = if text.contains("xen") { "xen" } else { "kvm" };
        return (Ok(kind.to_owned()), "/proc/device-tree/hypervisor/compatible");
    }
    match virtual_cpu {
        Ok(true) => (Ok("vm-other".to_owned()), "/proc/cpuinfo"),
        Ok(false) => (Ok("none".to_owned()), "/proc/cpuinfo"),
        Err(missing) => (Err(missing), "/proc/cpuinfo"),
    }
}

/// Whether the processor reports a hypervisor. Only x86 has such a flag.
fn virtual_cpu(source: &Source) -> Read<bool> {
    let path = "/proc/cpuinfo";
    let text = source.read(path)?;
    let flags = field(&text, "flags", ':')
        .ok_or_else(|| Missing::Absent(format!("{path} has no flags: this processor does not tell")))?;
    Ok(flags.split_ascii_whitespace().any(|flag| flag == "hypervisor"))
}

/// The hypervisor by the signature that the processor reports.
fn signature(source: &Source) -> Option<String> {
    if !source.is_live() {
        return None;
    }
    let text = hypervisor::hypervisor_signature()?;
    let known = [
        ("KVMKVMKVM", "kvm"),
        ("Linux KVM Hv", "kvm"),
        ("TCGTCGTCGTCG", "qemu"),
        ("VMwareVMware", "vmware"),
        ("Microsoft Hv", "microsoft"),
        ("XenVMMXenVMM", "xen"),
        ("bhyve bhyve ", "bhyve"),
        ("QNXQVMBSQG", "qnx"),
        ("ACRNACRNACRN", "acrn"),
        ("SRESRESRESRE", "sre"),
        ("Apple VZ", "apple"),
    ];
    let found = known.iter().find(|(name, _)| text.starts_with(name)).map(|(_, kind)| *kind);
    Some(found.unwrap_or("vm-other").to_owned())
}

/// The number of the first PID namespace (PROC_PID_INIT_INO of the kernel).
const FIRST_PID_NAMESPACE: &str = "pid:[4026531836]";

/// The container that this process runs in, and the evidence for it.
fn container(source: &Source) -> (Read<String>, &'static str) {
    let path = "/proc/self/ns/pid";
    let first = source.link(path).ok().map(|link| link == FIRST_PID_NAMESPACE);
    let (kind, mark) = marked(source);
    match (first, kind.as_deref()) {
        // In the first PID namespace and with the mounts of the first process there is no container: a mark only shows
        // that the file system was made from a container image.
        (Some(true), _) if mounts_of_init(source) => (Ok("none".to_owned()), path),
        (Some(false), Ok("none")) => (Ok("other".to_owned()), path),
        _ => (kind, mark),
    }
}

/// Whether this process and the first process see the same mounts.
fn mounts_of_init(source: &Source) -> bool {
    match (source.read("/proc/1/mountinfo"), source.read("/proc/self/mountinfo")) {
        (Ok(init), Ok(ours)) => init == ours,
        _ => false,
    }
}

/// The kind of container according to marks in the file system.
fn marked(source: &Source) -> (Read<String>, &'static str) {
    // The interface that container managers provide (CONTAINER_INTERFACE of systemd), then the marks of those that do
    // not.
    if let Ok(kind) = source.read("/run/systemd/container")
        && !kind.is_empty()
    {
        return (Ok(kind), "/run/systemd/container");
    }
    for (path, kind) in [
        ("/run/.containerenv", "podman"),
        ("/.dockerenv", "docker"),
        ("/var/run/secrets/kubernetes.io", "kubernetes"),
        ("/dev/lxd/sock", "lxc"),
    ] {
        if source.exists(path) {
            return (Ok(kind.to_owned()), path);
        }
    }
    let path = "/proc/1/cgroup";
    match source.read(path) {
        Ok(text) => {
            let kind = [
                ("kubepods", "kubernetes"),
                ("docker", "docker"),
                ("libpod", "podman"),
                ("containerd", "containerd"),
                ("lxc", "lxc"),
                ("garden", "garden"),
            ]
            .iter()
            .find(|(mark, _)| text.contains(mark))
            .map_or("none", |(_, kind)| *kind);
            (Ok(kind.to_owned()), path)
        }
        Err(Missing::Absent(_)) => (Ok("none".to_owned()), path),
        Err(missing) => (Err(missing), path),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tree::tree;

    fn scope(files: &[(&str, &str)]) -> (String, String) {
        let (_tree, source) = tree(files);
        (hypervisor(&source).0.unwrap_or_else(|e| e.to_string()), container(&source).0.unwrap())
    }

    const REAL: (&str, &str) = ("proc/cpuinfo", "flags : fpu vme\n");
    const VIRTUAL: (&str, &str) = ("proc/cpuinfo", "flags : fpu hypervisor vme\n");

    #[test]
    fn machines_are_told_by_firmware_and_processor() {
        let dmi = |vendor| ("sys/class/dmi/id/sys_vendor", vendor);
        for (files, kind) in [
            (vec![REAL, dmi("Dell Inc.")], "none"),
            (vec![VIRTUAL, dmi("Dell Inc.")], "vm-other"),
            (vec![VIRTUAL, dmi("VMware, Inc.")], "vmware"),
            (vec![VIRTUAL, dmi("Amazon EC2")], "amazon"),
            (vec![REAL, dmi("Amazon EC2")], "none"),
            (vec![VIRTUAL, ("sys/hypervisor/type", "xen\n")], "xen"),
        ] {
            assert_eq!(scope(&files).0, kind, "{files:?}");
        }
    }

    #[test]
    fn containers_are_told_by_their_marks() {
        for (file, kind) in [
            (("run/systemd/container", "systemd-nspawn\n"), "systemd-nspawn"),
            (("run/.containerenv", ""), "podman"),
            ((".dockerenv", ""), "docker"),
            (("proc/1/cgroup", "0::/kubepods.slice/x\n"), "kubernetes"),
            (("proc/1/cgroup", "0::/init.scope\n"), "none"),
        ] {
            assert_eq!(scope(&[REAL, file]).1, kind, "{file:?}");
        }
    }

    #[test]
    fn a_mark_from_an_image_is_not_taken_for_a_container() {
        let files = [(".dockerenv", ""), ("proc/1/mountinfo", "a\n"), ("proc/self/mountinfo", "a\n")];
        let (tree, source) = tree(&files);
        let link = "proc/self/ns/pid";
        tree.link(link, FIRST_PID_NAMESPACE);
        assert_eq!(container(&source).0, Ok("none".to_owned()));
        // The host's processes seen from a container's file system.
        tree.file("proc/self/mountinfo", "b\n");
        assert_eq!(container(&source).0, Ok("docker".to_owned()));
        tree.remove(".dockerenv");
        tree.remove(link);
        tree.link(link, "pid:[4026532999]");
        assert_eq!(container(&source).0, Ok("other".to_owned()));
    }

    #[test]
    fn a_processor_that_does_not_tell_leaves_the_answer_open() {
        assert!(scope(&[("proc/cpuinfo", "CPU part : 0xd0c\n")]).0.contains("does not tell"));
    }
}
