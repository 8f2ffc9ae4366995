"""Robots as URDF files: a door, and an arm with a bushing and a spring."""

from __future__ import annotations

DOOR = """<?xml version="1.0"?>
<robot name="door">
  <link name="world"/>
  <link name="panel">
    <inertial>
      <origin xyz="0 0.4 0"/>
      <mass value="9"/>
      <inertia ixx="0.6" iyy="0.36" izz="0.5" ixy="0" ixz="0" iyz="0"/>
    </inertial>
    <visual><geometry><box size="0.05 0.8 1.5"/></geometry></visual>
  </link>
  <joint name="axis" type="revolute">
    <parent link="world"/>
    <child link="panel"/>
    <origin xyz="1 2 3"/>
    <axis xyz="2 0 0"/>
    <limit lower="-0.1" upper="1.6" effort="30" velocity="5"/>
    <dynamics damping="0.25"/>
  </joint>
  <transmission name="drive">
    <type>transmission_interface/SimpleTransmission</type>
    <joint name="axis"/>
    <actuator name="motor"/>
  </transmission>
</robot>
"""

LINK = """
  <link name="{}">
    <inertial>
      <origin xyz="0.1 -0.2 0.3" rpy="0.3 0.2 -0.5"/>
      <mass value="2"/>
      <inertia ixx="0.5" iyy="0.6" izz="0.7" ixy="0.01" ixz="-0.02" iyz="0.03"/>
    </inertial>
  </link>"""

BUSHING = """
  <drake:linear_bushing_rpy>
    <drake:bushing_frameA name="socket"/>
    <drake:bushing_frameC name="hand"/>
    <drake:bushing_torque_stiffness value="10 20 30"/>
    <drake:bushing_torque_damping value="0.1 0.2 0.3"/>
    <drake:bushing_force_stiffness value="100 200 300"/>
    <drake:bushing_force_damping value="1 2 3"/>
  </drake:linear_bushing_rpy>"""

SPRING = """
  <drake:linear_spring_damper>
    <drake:linear_spring_damper_body_A name="base"/>
    <drake:linear_spring_damper_p_AP value="0.1 0.2 0.3"/>
    <drake:linear_spring_damper_body_B name="hand"/>
    <drake:linear_spring_damper_p_BQ value="-0.1 0.2 0"/>
    <drake:linear_spring_damper_free_length value="0.5"/>
    <drake:linear_spring_damper_stiffness value="30"/>
    <drake:linear_spring_damper_damping value="2"/>
  </drake:linear_spring_damper>"""

ARM = f"""
<robot name="arm" xmlns:drake="http://drake.mit.edu">
  {LINK.format("base")} {LINK.format("forearm")} {LINK.format("hand")}
  <joint name="elbow" type="continuous">
    <parent link="base"/>
    <child link="forearm"/>
    <origin xyz="0.3 0.1 -0.2" rpy="0.2 -0.4 0.7"/>
    <axis xyz="0 1 0"/>
    <dynamics damping="0.3"/>
  </joint>
  <joint name="wrist" type="prismatic">
    <parent link="forearm"/>
    <child link="hand"/>
    <origin xyz="0.4 0 0"/>
    <axis xyz="1 1 0"/>
    <limit lower="-0.2" upper="0.3" effort="5" velocity="2" drake:acceleration="7"/>
  </joint>
  <transmission>
    <type>SimpleTransmission</type>
    <joint name="elbow"/>
    <actuator name="motor">
      <drake:rotor_inertia value="0.02"/>
      <drake:gear_ratio value="9"/>
    </actuator>
  </transmission>
  <frame name="socket" link="base" xyz="0.1 0.2 0.3" rpy="0.1 0.2 0.3"/>
  {BUSHING}
  {SPRING}
</robot>
"""
